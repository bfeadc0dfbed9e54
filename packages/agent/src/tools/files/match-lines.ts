import { parentPort } from 'node:worker_threads';

/*
 * Runs in a thread of its own: an expression that backtracks without end can then be stopped by ending the thread.
 * In: one text and the expression. Out: the indices of the lines that match.
 */
export interface MatchRequest {
  readonly source: string;
  readonly flags: string;
  readonly text: string;
  readonly limit: number;
}

parentPort?.on('message', ({ source, flags, text, limit }: MatchRequest) => {
  const pattern = new RegExp(source, flags);
  const lines: number[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (lines.length >= limit) break;
    if (pattern.test(line)) lines.push(index);
  }
  parentPort?.postMessage(lines);
});
