import { StringDecoder } from 'node:string_decoder';

/**
 * The output of one command: its beginning and its end, however long it was. Bytes that are no UTF-8, and NUL, become
 * U+FFFD, so the text is good for JSON and for every database; a character whose bytes come in two pieces stays one.
 */
export class CommandOutput {
  readonly #headMaxBytes: number;
  readonly #tailMaxBytes: number;
  readonly #onOutput: ((chunk: string) => void) | undefined;
  readonly #decoder = new StringDecoder('utf8');
  readonly #tail: Buffer[] = [];
  #head = '';
  #headBytes = 0;
  #tailBytes = 0;
  #leftOutBytes = 0;
  #reportedBytes = 0;
  #bytes = 0;

  constructor(maxBytes: number, onOutput?: (chunk: string) => void) {
    this.#headMaxBytes = Math.floor(maxBytes / 2);
    this.#tailMaxBytes = maxBytes - this.#headMaxBytes;
    this.#onOutput = onOutput;
  }

  /** The size of all output, the left-out middle included. */
  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#take(this.#decoder.write(chunk));
  }

  /** Returns the whole text, after the output has ended. */
  end(): string {
    this.#take(this.#decoder.end());
    const tail = Buffer.concat(this.#tail);
    const start = characterStart(tail, Math.max(0, tail.length - this.#tailMaxBytes));
    const leftOutBytes = this.#leftOutBytes + start;
    const end = tail.subarray(start).toString('utf8');
    if (leftOutBytes === 0) return this.#head + end;
    return `${this.#head}\n[... ${String(leftOutBytes)} bytes of output left out here ...]\n${end}`;
  }

  #take(decoded: string): void {
    if (decoded === '') return;
    const text = decoded.replaceAll('\0', '\uFFFD');
    this.#report(text);
    const head = this.#tail.length === 0 ? firstBytes(text, this.#headMaxBytes - this.#headBytes) : '';
    this.#head += head;
    this.#headBytes += Buffer.byteLength(head);
    if (head.length < text.length) this.#keepLast(Buffer.from(text.slice(head.length)));
  }

  #keepLast(piece: Buffer): void {
    this.#tail.push(piece);
    this.#tailBytes += piece.length;
    for (let first = this.#tail[0]; first !== undefined && this.#tailBytes - first.length >= this.#tailMaxBytes; first = this.#tail[0]) {
      this.#tail.shift();
      this.#tailBytes -= first.length;
      this.#leftOutBytes += first.length;
    }
  }

  #report(text: string): void {
    const roomBytes = this.#headMaxBytes + this.#tailMaxBytes - this.#reportedBytes;
    if (this.#onOutput === undefined || roomBytes <= 0) return;
    const reported = firstBytes(text, roomBytes);
    // A piece that does not fit ends the reporting, even if a smaller piece after it would fit: reported output has no
    // gaps.
    this.#reportedBytes = reported.length < text.length ? Number.POSITIVE_INFINITY : this.#reportedBytes + Buffer.byteLength(reported);
    if (reported !== '') this.#onOutput(reported);
  }
}

/** Returns as much of a text as fits, whole characters only. */
function firstBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = Math.max(0, maxBytes);
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.subarray(0, end).toString('utf8');
}

function characterStart(bytes: Buffer, from: number): number {
  let start = from;
  while (start < bytes.length && isContinuation(bytes[start])) start += 1;
  return start;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
