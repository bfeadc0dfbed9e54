import { once } from 'node:events';
import { connect } from 'node:net';

export interface HoldSpec {
  readonly port: number;
  readonly apiKeys: readonly string[];
  readonly count: number;
}

const AT_ONCE = 50;

/**
 * Begins `count` turns of as many senders and reads each up to its first event; the streams stay open as long as this
 * process lives.
 */
export async function openStreams({ port, apiKeys, count }: HoldSpec): Promise<void> {
  let next = 0;
  const openNext = async (): Promise<void> => {
    while (next < count) {
      const number = (next += 1);
      await openOne(port, {
        key: apiKeys[number % apiKeys.length] ?? '',
        sender: `idle-${String(process.pid)}-${String(performance.now())}-${String(number)}`,
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, openNext));
}

async function openOne(port: number, { key, sender }: { readonly key: string; readonly sender: string }): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  const body = JSON.stringify({ message: 'Are you there?', sender });
  const length = String(body.length);
  socket.write(
    `POST /api/cs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
  );
  socket.setEncoding('latin1');
  let head = '';
  while (!head.includes('event: session')) {
    const [piece]: unknown[] = await once(socket, 'data');
    head += String(piece);
    if (head.startsWith('HTTP/1.1') && !head.startsWith('HTTP/1.1 200')) throw new Error(head);
  }
}
