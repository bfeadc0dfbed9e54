// The model server of a chaos run, a process of its own: follows the user's message and keeps a ledger of every call.
import { createWriteStream } from 'node:fs';
import { callTools, hang, say, startScriptedModel, type RecordedRequest, type Script, type ScriptedCall } from '@concierge/testing';
import { readModelConfig } from './config.ts';
import type { LedgerLine } from './audit/evidence.ts';
import { effectToken, readRequest, type TurnRequest } from './load/request.ts';

const { port, ledger: ledgerFile } = readModelConfig();
const ledger = createWriteStream(ledgerFile, { flags: 'a' });

function write(event: LedgerLine['event'], request: RecordedRequest): void {
  const marker = readRequest(request.userText)?.marker ?? '';
  const line: LedgerLine = {
    event,
    atMs: Date.now(),
    number: request.number,
    marker,
    round: request.round,
    // The key of every process of the system begins with its name.
    caller: request.headers.authorization?.replace('Bearer ', '').split('.', 1)[0] ?? '',
    ...(event === 'end' && { aborted: request.aborted }),
  };
  ledger.write(`${JSON.stringify(line)}\n`);
}

/** Announces in its first rounds what it is about to do, does it, and answers in the last. */
function reply(request: RecordedRequest): Script {
  const wanted = readRequest(request.userText);
  if (wanted === undefined) return [say('ok')];
  // The process that asks this does not live to hear an answer (neighbours/poison.ts).
  if (wanted.kind === 'poison') return [hang()];
  const calls = buildRounds(wanted, request.number)[request.round];
  if (calls === undefined) return [say(buildAnswer(wanted, request.number), wanted)];
  return [say(`${wanted.marker} looks first (${String(request.number)}). `, { chunks: 3, delayMs: wanted.delayMs }), callTools(calls)];
}

function buildRounds({ kind, marker }: TurnRequest, number: number): ScriptedCall[][] {
  const look: ScriptedCall[] = [{ name: 'status', args: {} }];
  const text = effectToken(marker, number);
  const note: ScriptedCall[] = [{ name: 'memory_write', args: { text, ...(number % 2 === 0 && { title: `about ${marker}` }) } }];
  switch (kind) {
    case 'say':
    case 'slow':
    case 'poison':
      return [];
    case 'read':
      return [[...look, ...look]];
    case 'note':
      return [note];
    case 'file':
      return [[{ name: 'write', args: { path: `templates/${text.replace('~', '-')}.md`, content: text } }]];
    case 'both':
      return [look, [...look, ...note]];
  }
}

/** Another text at every call: what readers saw and what was saved can only agree when they are the same reply. */
function buildAnswer({ marker, chunks }: TurnRequest, number: number): string {
  return [`${marker} answer ${String(number)}:`, ...Array.from({ length: chunks }, (_, index) => `word${String(index)}`)].join(' ');
}

await startScriptedModel({
  port,
  record: false,
  fallback: reply,
  onStart: (request) => {
    write('start', request);
  },
  onEnd: (request) => {
    write('end', request);
  },
});
