import { parentPort } from 'node:worker_threads';
import { RE2JS } from 're2js';

/*
 * Runs in a thread of its own: matching takes time in proportion to the text, but some expressions take a hundred times more than
 * others, and the process has other turns to run. In: one text and the expression. Out: the indices of the lines that match.
 */
export interface MatchRequest {
  readonly source: string;
  readonly flags: number;
  readonly text: string;
  readonly limit: number;
}

let compiled: { readonly source: string; readonly pattern: RE2JS } | undefined;

parentPort?.on('message', ({ source, flags, text, limit }: MatchRequest) => {
  if (compiled?.source !== source) compiled = { source, pattern: RE2JS.compile(source, flags) };
  const lines: number[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (lines.length >= limit) break;
    if (compiled.pattern.test(line)) lines.push(index);
  }
  parentPort?.postMessage(lines);
});
