// The scripted model as a process of its own:
// node --conditions=@concierge/source packages/testing/src/model/scripted-model-main.ts [--port 0] [--host 127.0.0.1]
// [--ledger file] [--reply text] [--chunks 20] [--first-ms 200] [--delay-ms 20]
// Prints {"url","port"} as one line when it listens. The ledger gets one JSON line when a request starts and one when
// it ends.
import { createWriteStream, type WriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { startScriptedModel, type RecordedRequest } from './scripted-model.ts';
import { say, wait } from './scripted-model-script.ts';

const { values: flags } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    ledger: { type: 'string' },
    reply: { type: 'string', default: 'word '.repeat(20).trimEnd() },
    chunks: { type: 'string', default: '20' },
    'first-ms': { type: 'string', default: '0' },
    'delay-ms': { type: 'string', default: '0' },
  },
});

const ledger = flags.ledger === undefined ? undefined : createWriteStream(flags.ledger, { flags: 'a' });
const firstMs = Number(flags['first-ms']);
const reply = say(flags.reply, { chunks: Number(flags.chunks), delayMs: Number(flags['delay-ms']) });

const model = await startScriptedModel({
  port: Number(flags.port),
  host: flags.host,
  record: false,
  fallback: firstMs > 0 ? [wait(firstMs), reply] : [reply],
  ...(ledger === undefined
    ? {}
    : { onStart: (request) => writeLine(ledger, 'start', request), onEnd: (request) => writeLine(ledger, 'end', request) }),
});
process.stdout.write(`${JSON.stringify({ url: model.url, port: model.port })}\n`);

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    void model.close().then(() => (ledger === undefined ? process.exit(0) : ledger.end(() => process.exit(0))));
  });
}

function writeLine(file: WriteStream, event: 'start' | 'end', request: RecordedRequest): void {
  const { number, userText, round, aborted } = request;
  file.write(`${JSON.stringify({ event, atMs: Date.now(), number, userText, round, ...(event === 'end' ? { aborted } : {}) })}\n`);
}
