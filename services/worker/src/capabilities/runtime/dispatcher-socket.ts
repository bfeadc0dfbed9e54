import { constants, copyFile, chmod, mkdir, open, rm, type FileHandle } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exitCodes, type Dispatcher, type DispatchReply, DispatchRequest } from '@concierge/agent';
import { limits } from '@concierge/contract';
import { background, type Log } from '@concierge/runtime';

const CLIENT = fileURLToPath(new URL('concierge.py', import.meta.url));
const CONNECTIONS_MAX = 256;
/** Requests of one turn in memory, together. */
const REQUESTS_MAX_BYTES = 4 * limits.nestedCallMaxBytes;
/** A request is sent in one go. */
const REQUEST_TIMEOUT_MS = 20_000;
/** What a socket's address has room for, on Linux, without the byte that ends it. */
const SOCKET_PATH_MAX_BYTES = 107;

export interface DispatcherSocketOptions {
  /**
   * The folder to make; it must not exist yet. Its parent is closed to other users; a sandbox sees the folder itself.
   */
  readonly folder: string;
  readonly dispatcher: Pick<Dispatcher, 'answer'>;
  readonly log: Log;
}

/** The folder that a turn's sandbox sees at /run/concierge: the socket that answers, and the program that asks. */
export class DispatcherSocket implements AsyncDisposable {
  readonly folder: string;
  readonly #dispatcher: DispatcherSocketOptions['dispatcher'];
  readonly #log: Log;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #budget = new RequestBudget(REQUESTS_MAX_BYTES);
  #handle: FileHandle | undefined;

  private constructor({ folder, dispatcher, log }: DispatcherSocketOptions) {
    this.folder = folder;
    this.#dispatcher = dispatcher;
    this.#log = log;
    this.#server = createServer((socket) => {
      background(this.#serve(socket), log);
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
  }

  static async open(options: DispatcherSocketOptions): Promise<DispatcherSocket> {
    const opened = new DispatcherSocket(options);
    try {
      await opened.#open();
    } catch (error) {
      await opened[Symbol.asyncDispose]();
      throw error;
    }
    return opened;
  }

  /** Resolves when no client is connected any more and the folder is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    for (const socket of this.#sockets) socket.destroy();
    await closed.promise;
    await this.#handle?.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #open(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const client = join(this.folder, 'concierge');
    await copyFile(CLIENT, client);
    await chmod(client, 0o755);
    const listening = Promise.withResolvers<void>();
    this.#server.once('error', listening.reject);
    this.#server.listen(await this.#socketPath(), () => listening.resolve());
    await listening.promise;
    this.#server.on('error', (error) => {
      this.#log.error({ err: error }, 'the dispatcher cannot take a connection');
    });
    // The sandbox's user is none of the host's users.
    await chmod(join(this.folder, 'socket'), 0o666);
    await chmod(this.folder, 0o755);
  }

  /**
   * Where the whole path does not fit into an address, the way leads through the folder's descriptor, open as long as
   * the socket is.
   */
  async #socketPath(): Promise<string> {
    const path = join(this.folder, 'socket');
    if (Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES) return path;
    this.#handle = await open(this.folder, constants.O_RDONLY | constants.O_DIRECTORY);
    return `/proc/self/fd/${String(this.#handle.fd)}/socket`;
  }

  async #serve(socket: Socket): Promise<void> {
    const gone = new AbortController();
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      gone.abort(new Error('the one who asked has gone'));
    });
    // A broken connection is closed as well; nothing else can be done about it.
    socket.on('error', () => undefined);
    socket.setTimeout(REQUEST_TIMEOUT_MS, () => socket.destroy());
    const reply = await this.#replyTo(socket, gone.signal);
    if (!socket.destroyed) socket.end(JSON.stringify(reply));
  }

  async #replyTo(socket: Socket, signal: AbortSignal): Promise<DispatchReply> {
    const refusal = (exitCode: number, text: string): DispatchReply => ({ exitCode, stdout: '', stderr: `concierge: ${text}\n` });
    try {
      const request = await readRequest(socket, this.#budget);
      // From here on the tool's own time counts.
      socket.setTimeout(0);
      return await this.#dispatcher.answer(request, signal);
    } catch (error) {
      if (error instanceof UnreadableRequest) return refusal(exitCodes.usage, error.message);
      if (!signal.aborted) this.#log.error({ err: error }, 'the dispatcher failed');
      return refusal(exitCodes.notConnected, 'the service could not answer.');
    }
  }
}

/** A request that cannot be read; its message is for the sender. */
class UnreadableRequest extends Error {
  override readonly name = 'UnreadableRequest';
}

/** Limits the memory of a turn's connections together. */
class RequestBudget {
  #bytes: number;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  /** @throws UnreadableRequest */
  take(bytes: number): void {
    if (bytes > this.#bytes) throw new UnreadableRequest('too much is being sent at once.');
    this.#bytes -= bytes;
  }

  giveBack(bytes: number): void {
    this.#bytes += bytes;
  }
}

/** Reads one line of JSON. @throws UnreadableRequest; rejects when the connection breaks */
async function readRequest(socket: Socket, budget: RequestBudget): Promise<DispatchRequest> {
  const line = await readLine(socket, budget);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new UnreadableRequest('the request is not one line of JSON.');
  }
  const request = DispatchRequest.safeParse(value);
  if (!request.success) throw new UnreadableRequest('the request is not understood.');
  return request.data;
}

async function readLine(socket: Socket, budget: RequestBudget): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  socket.once('close', () => {
    budget.giveBack(bytes);
    reject(new Error('the connection was closed'));
  });
  const onData = (chunk: Buffer): void => {
    try {
      budget.take(chunk.length);
      bytes += chunk.length;
      if (bytes > limits.nestedCallMaxBytes) throw new UnreadableRequest('the request is too large; put long content into a file.');
    } catch (error) {
      socket.off('data', onData);
      socket.resume();
      reject(error instanceof Error ? error : new Error('unreadable', { cause: error }));
      return;
    }
    chunks.push(chunk);
    if (!chunk.includes(NEWLINE)) return;
    socket.off('data', onData);
    // The stream goes on flowing, unread: only so does it notice that the other side has gone.
    socket.resume();
    const all = Buffer.concat(chunks);
    resolve(all.toString('utf8', 0, all.indexOf(NEWLINE)));
  };
  socket.on('data', onData);
  return await promise;
}

const NEWLINE = 0x0a;
