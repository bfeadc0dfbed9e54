// `node --conditions=@concierge/source infra/docs/concierge-server.mjs SOCKET`: the operators' command line, loaded
// once for all commands that pages have. A request is the environment and then the arguments, each ended by NUL with an
// empty one between the two; the answer is what the command prints, and its last line the exit code.
import { createServer } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { readConfig } from '../../packages/cli/src/config.ts';
import { run } from '../../packages/cli/src/run.ts';

async function answer(request, response) {
  const entries = (await buffer(request)).toString().split('\0').slice(0, -1);
  const end = entries.indexOf('');
  const env = Object.fromEntries(entries.slice(0, end).map((entry) => entry.split(/=(.*)/su).slice(0, 2)));
  const [out, err] = [new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(out), text(err)]);
  const code = await run(entries.slice(end + 1), { readConfig: () => readConfig(env), input: Readable.from([]), out, err });
  out.end();
  err.end();
  response.end(`${(await printed).join('')}\n${code}\n`);
}

createServer((request, response) => void answer(request, response)).listen(process.argv[2], () => process.send('ready'));
