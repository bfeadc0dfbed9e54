import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { answerDeadline, MemoryWatch } from '@concierge/runtime';
import { ReadMessage, type ReadTask } from './read-message.ts';

/** Seconds of processor time, which a machine under load does not shorten. */
const CPU_SECONDS = 8;
/**
 * For a process that waits instead of working. Longer than callers wait, who know that it was their time that ran out:
 * a busy machine may take half a minute until a process has begun to read, and that is no fault of the document.
 */
const TIMEOUT_MS = 90_000;
/**
 * The address space of the whole process, in KiB. Node 24 reserves 1.0 GiB before it reads anything, with the flags
 * below; the text of a PDF with 1,600 pages took 80 MiB more. So a document gets about 500 MiB, buffers included, which
 * no limit of V8 counts.
 */
const ADDRESS_SPACE_KIB = 1536 * 1024;
/**
 * What stays in memory is looked at beside it: it is the only limit where the system has none of address space (macOS).
 */
const RESIDENT_MAX_BYTES = 320 * 1024 * 1024;
const HEAP_MB = 160;

/** A JSON string takes up to six bytes for a character. */
const BYTES_PER_CHARACTER = 6;
const MESSAGE_OVERHEAD_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** The exit code when the system refuses the limit: a document is never read without it. */
const NO_LIMIT = 70;
const addressSpace = process.platform === 'linux' ? `ulimit -v ${String(ADDRESS_SPACE_KIB)} || exit ${String(NO_LIMIT)};` : '';
const script = `ulimit -c 0; ulimit -t ${String(CPU_SECONDS)} || exit ${String(NO_LIMIT)}; ${addressSpace} exec "$0" "$@"`;

// The main file is beside this one, in the sources as in the compiled output.
const mainFile = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? './read-document-main.ts' : './read-document-main.js', import.meta.url),
);
const flags = [
  `--max-old-space-size=${String(HEAP_MB)}`,
  '--max-semi-space-size=8',
  // Fewer threads reserve less, whatever the machine has.
  '--v8-pool-size=1',
  '--disallow-code-generation-from-strings',
  // It writes no file, starts no process and no thread.
  '--permission',
  '--allow-fs-read=*',
];

/**
 * Reads one document in a separate process. Returns the process's last message before it ended or was killed; undefined
 * when there was none. Limits of processor time and address space are set before Node starts, so that no document,
 * whatever it decodes to, takes more.
 * @throws Error when the process cannot be started with its limits
 */
export async function readInProcess(task: ReadTask, signal: AbortSignal): Promise<ReadMessage | undefined> {
  const child = spawn('/bin/sh', ['-c', script, process.execPath, ...flags, mainFile], {
    env: { MALLOC_ARENA_MAX: '1', UV_THREADPOOL_SIZE: '1' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const kill = (): void => {
    child.kill('SIGKILL');
  };
  const over = AbortSignal.any([signal, answerDeadline(TIMEOUT_MS)]);
  over.addEventListener('abort', kill, { once: true });
  using _watch = child.pid === undefined ? undefined : new MemoryWatch(child.pid, RESIDENT_MAX_BYTES, kill);
  try {
    const maxBytes = task.maxCharacters * BYTES_PER_CHARACTER + MESSAGE_OVERHEAD_BYTES;
    send(child.stdin, task);
    const [code, line] = await Promise.all([exitCode(child), lastLine(child.stdout, { maxBytes, onTooMuch: kill })]);
    if (code === NO_LIMIT) throw new Error('The limits of a process that reads documents cannot be set on this system.');
    return line === undefined ? undefined : messageIn(line);
  } finally {
    over.removeEventListener('abort', kill);
    kill();
  }
}

/** null: it was killed. */
async function exitCode(child: ChildProcess): Promise<unknown> {
  const [code] = await once(child, 'close');
  return code;
}

function send(stdin: Writable, { bytes, ...facts }: ReadTask): void {
  // One that ended before it had read everything closes the pipe.
  stdin.on('error', () => undefined);
  stdin.write(`${JSON.stringify(facts)}\n`);
  stdin.end(bytes);
}

/** The last whole line of a stream. */
async function lastLine(
  stream: Readable,
  { maxBytes, onTooMuch }: { readonly maxBytes: number; readonly onTooMuch: () => void },
): Promise<Buffer | undefined> {
  let line: Buffer | undefined;
  let open: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    let begin = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, begin)) {
      line = Buffer.concat([...open, chunk.subarray(begin, end)]);
      open = [];
      bytes = 0;
      begin = end + 1;
    }
    open.push(chunk.subarray(begin));
    bytes += chunk.length - begin;
    if (bytes > maxBytes) onTooMuch();
  });
  await once(stream, 'close');
  return line;
}

function messageIn(line: Buffer): ReadMessage | undefined {
  try {
    return ReadMessage.safeParse(JSON.parse(line.toString('utf8'))).data;
  } catch {
    return undefined;
  }
}
