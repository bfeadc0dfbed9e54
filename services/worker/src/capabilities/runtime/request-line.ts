import type { Socket } from 'node:net';
import { limits } from '@concierge/contract';
import { DispatchRequest } from '@concierge/agent';

/** A request that cannot be read; its message is for the sender. */
export class UnreadableRequest extends Error {
  override readonly name = 'UnreadableRequest';
}

/** Limits the memory of a turn's connections together. */
export class RequestBudget {
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
export async function readRequest(socket: Socket, budget: RequestBudget): Promise<DispatchRequest> {
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
