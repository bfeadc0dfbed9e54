import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;
const HEADER_BYTES = 12;

/** A name server on this machine that knows a few names, so that what DNS answers is part of a test. */
export class DnsStub implements AsyncDisposable {
  readonly questions: string[] = [];
  readonly #socket: Socket = createSocket('udp4');
  readonly #names: Readonly<Record<string, readonly string[]>>;

  /** IPv4 addresses by name; an IPv6 question gets an empty answer. */
  constructor(names: Readonly<Record<string, readonly string[]>>) {
    this.#names = names;
    this.#socket.on('message', (query, sender) => {
      this.#socket.send(this.#answer(query), sender.port, sender.address);
    });
  }

  async listen(): Promise<this> {
    this.#socket.bind(0, '127.0.0.1');
    await once(this.#socket, 'listening');
    return this;
  }

  get place(): string {
    return `127.0.0.1:${String(this.#socket.address().port)}`;
  }

  #answer(query: Buffer): Buffer {
    const { name, end } = readName(query);
    const type = query.readUInt16BE(end);
    this.questions.push(name);
    const addresses = type === TYPE_A ? (this.#names[name] ?? []) : [];
    const header = Buffer.alloc(HEADER_BYTES);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(name in this.#names ? 0x81_80 : 0x81_83, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(addresses.length, 6);
    const records = addresses.map((address) =>
      // A pointer to the question's name, type A, class IN, no time to live.
      Buffer.from([0xc0, HEADER_BYTES, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    );
    return Buffer.concat([header, query.subarray(HEADER_BYTES, end + 4), ...records]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}
