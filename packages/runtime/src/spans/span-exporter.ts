import { answerDeadline } from '../concurrency/tasks.ts';
import type { Log } from '../log.ts';
import { readVersion } from '../version.ts';
import { encodeSpans, type ExportedSpan, type SpanAttributes } from './encode-spans.ts';

export interface SpanExporterOptions {
  /** Where it posts to: a collector's `/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Between two posts. */
  readonly everyMs: number;
  readonly resource: SpanAttributes;
  readonly log: Log;
}

/** More are dropped, the newest first: a collector that is away must not fill the memory. */
const WAITING_MAX = 8192;
const POSTED_AT_ONCE = 512;

/**
 * Sends spans to a collector (OTLP over HTTP, Protocol Buffers), some seconds after they are added. Adding neither
 * waits nor fails; what cannot be posted is dropped and counted in the log.
 */
export class SpanExporter {
  readonly #options: SpanExporterOptions;
  #waiting: ExportedSpan[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #posting: Promise<void> = Promise.resolve();

  constructor(options: SpanExporterOptions) {
    this.#options = options;
  }

  add(spans: readonly ExportedSpan[]): void {
    const room = WAITING_MAX - this.#waiting.length;
    this.#waiting.push(...spans.slice(0, room));
    this.#dropped += Math.max(0, spans.length - room);
  }

  start(): void {
    this.#timer = setInterval(() => void this.flush(), this.#options.everyMs).unref();
  }

  /** Posts what waits; does not reject. One post is under way at a time. */
  async flush(): Promise<void> {
    this.#posting = this.#posting.then(async () => this.#postAll());
    return this.#posting;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #postAll(): Promise<void> {
    const { log } = this.#options;
    if (this.#dropped > 0) log.warn({ spans: this.#dropped }, 'spans were dropped: the collector is too slow');
    this.#dropped = 0;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, POSTED_AT_ONCE);
      this.#waiting = this.#waiting.slice(POSTED_AT_ONCE);
      try {
        await this.#post(batch);
      } catch (error) {
        log.warn({ err: error, spans: batch.length }, 'spans could not be sent to the collector');
        return;
      }
    }
  }

  async #post(spans: readonly ExportedSpan[]): Promise<void> {
    const { url, headers, timeoutMs, resource } = this.#options;
    const { version } = readVersion();
    const body = encodeSpans(spans, { 'service.version': version, ...resource }, 'concierge');
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-protobuf' },
      body: new Uint8Array(body),
      redirect: 'error',
      signal: answerDeadline(timeoutMs),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`The collector answered ${String(response.status)}.`);
  }
}
