import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdir, stat, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import type { DispatchReply, DispatchRequest } from '@concierge/agent';
import { limits } from '@concierge/contract';
import { eventually, gate, silentLog as log, temporaryDirectory } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { DispatcherSocket } from '../src/capabilities/runtime/dispatcher-socket.ts';

interface ReceivedMessage {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

class Echo {
  readonly requests: DispatchRequest[] = [];
  readonly signals: AbortSignal[] = [];
  play: (request: DispatchRequest) => Promise<DispatchReply> = async ({ argv, stdin }) =>
    Promise.resolve({ exitCode: 0, stdout: JSON.stringify({ argv, stdin }), stderr: '' });

  async answer(request: DispatchRequest, signal: AbortSignal): Promise<DispatchReply> {
    this.requests.push(request);
    this.signals.push(signal);
    return await this.play(request);
  }
}

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let echo: Echo;
let dispatcherSocket: DispatcherSocket;

setUpEach(async (stack) => {
  directory = stack.use(await temporaryDirectory());
  echo = new Echo();
  dispatcherSocket = stack.use(await DispatcherSocket.open({ folder: join(directory.path, 'd'), dispatcher: echo, log }));
});

function start(argv: readonly string[]): ChildProcessWithoutNullStreams {
  return spawn(join(dispatcherSocket.folder, 'concierge'), argv, { env: { ...pathOnly(), CONCIERGE_COMMAND: '7' } });
}

function pathOnly(): { PATH: string } {
  return { PATH: '/usr/local/bin:/usr/bin:/bin' };
}

async function ended(child: ChildProcessWithoutNullStreams): Promise<ReceivedMessage> {
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { code, stdout, stderr };
}

async function run(argv: readonly string[], stdin: string | Buffer = ''): Promise<ReceivedMessage> {
  const child = start(argv);
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  return await ended(child);
}

/** What is answered to bytes that the program would never send. */
async function sendRaw(bytes: string): Promise<string> {
  const socket = connect(join(dispatcherSocket.folder, 'socket'));
  socket.on('error', () => undefined);
  socket.write(bytes);
  return await text(socket);
}

describe('the concierge program', () => {
  it('hands over its words as they are and prints what comes back', async () => {
    echo.play = async () => Promise.resolve({ exitCode: 4, stdout: 'ä\n', stderr: 'ö\n' });
    expect(await run(['read', '--path', 'a b', '', 'ü\n'])).toEqual({ code: 4, stdout: 'ä\n', stderr: 'ö\n' });
    expect(echo.requests).toEqual([{ command: '7', argv: ['read', '--path', 'a b', '', 'ü\n'], stdin: null }]);
  });

  it('reads standard input only where a word asks for it', async () => {
    await run(['write', '--content', '-'], 'from a pipe\n');
    await run(['write', '--json=-'], '{}');
    await run(['read', '--path', 'a-', 'b=-'], 'not for it');
    expect(echo.requests.map(({ stdin }) => stdin)).toEqual(['from a pipe\n', '{}', null]);
  });

  it('leaves a script’s own input alone', async () => {
    const script = 'while read -r line; do "$0" read --path "$line" >/dev/null; echo "$line"; done';
    const child = spawn('bash', ['--norc', '-c', script, join(dispatcherSocket.folder, 'concierge')], { env: pathOnly() });
    child.stdin.end('one\ntwo\n');
    expect(await ended(child)).toMatchObject({ code: 0, stdout: 'one\ntwo\n' });
  });

  it('refuses input that is no text before it asks the dispatcher', async () => {
    expect(await run(['write', '--content', '-'], Buffer.from([0xff, 0xfe]))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('not UTF-8'),
    });
    expect(echo.requests).toEqual([]);
  });

  it('reports that nothing answers when the turn is over', async () => {
    const client = join(directory.path, 'left-behind');
    await mkdir(client);
    await ended(spawn('cp', [join(dispatcherSocket.folder, 'concierge'), client]));
    await dispatcherSocket[Symbol.asyncDispose]();
    const said = await ended(spawn(join(client, 'concierge'), ['status'], { env: pathOnly() }));
    expect(said).toEqual({ code: 3, stdout: '', stderr: expect.stringContaining('nobody answers') });
  });

  it('is one of a pipe like any other: who reads may stop reading', async () => {
    echo.play = async () => Promise.resolve({ exitCode: 0, stdout: 'line\n'.repeat(100_000), stderr: '' });
    const script = 'set -o pipefail; "$0" read --path x | head -n 1';
    const said = await ended(spawn('bash', ['--norc', '-c', script, join(dispatcherSocket.folder, 'concierge')], { env: pathOnly() }));
    expect(said).toEqual({ code: 0, stdout: 'line\n', stderr: '' });
  });
});

describe('the socket of the dispatcher', () => {
  it('is open to any user of the sandbox', async () => {
    const readMode = async (name: string): Promise<number> => (await stat(join(dispatcherSocket.folder, name))).mode & 0o777;
    expect(await readMode('.')).toBe(0o755);
    expect(await readMode('concierge')).toBe(0o755);
    expect(await readMode('socket')).toBe(0o666);
  });

  it('works below a path that is longer than a socket’s address', async () => {
    await dispatcherSocket[Symbol.asyncDispose]();
    dispatcherSocket = await DispatcherSocket.open({ folder: join(directory.path, 'long'.repeat(40), 'd'), dispatcher: echo, log });
    // As in a sandbox, where the folder has a short name.
    const short = join(directory.path, 'short');
    await symlink(dispatcherSocket.folder, short);
    expect(await ended(spawn(join(short, 'concierge'), ['status'], { env: pathOnly() }))).toMatchObject({ code: 0 });
    expect(echo.requests).toHaveLength(1);
  });

  it('answers what cannot be read with what is wrong', async () => {
    expect(await sendRaw('hello\n')).toContain('not one line of JSON');
    expect(await sendRaw('{"argv":[]}\n')).toContain('not understood');
    const said = await run(['write', '--content', '-'], 'x'.repeat(limits.nestedCallMaxBytes));
    expect(said).toMatchObject({ code: 2, stderr: expect.stringContaining('too large') });
    expect(echo.requests).toEqual([]);
  });

  it('answers many at once', async () => {
    const codes = await Promise.all(Array.from({ length: 20 }, async (_, index) => (await run(['read', String(index)])).code));
    expect(codes).toEqual(Array.from({ length: 20 }, () => 0));
    expect(echo.requests).toHaveLength(20);
  });

  it('notices when the one who asked has gone', async () => {
    const asked = gate();
    const never = Promise.withResolvers<DispatchReply>();
    echo.play = async () => {
      asked.open();
      return await never.promise;
    };
    const child = start(['bash']);
    await asked.opened;
    child.kill('SIGKILL');
    await eventually(() => echo.signals[0]?.aborted);
    expect(echo.signals).toMatchObject([{ aborted: true }]);
    never.resolve({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('closes at once, leaves no folder, and answers those who wait', async () => {
    const asked = gate();
    echo.play = async () => {
      asked.open();
      return await new Promise<DispatchReply>(() => undefined);
    };
    const said = run(['bash']);
    await asked.opened;
    await dispatcherSocket[Symbol.asyncDispose]();
    expect(await said).toMatchObject({ code: 3 });
    await expect(stat(dispatcherSocket.folder)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
