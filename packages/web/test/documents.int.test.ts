import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { nestedFlatePdf, smallPdf } from '@concierge/testing';
import { DocumentReader, UnreadableError, type ReadDocument } from '@concierge/web';

const never = new AbortController().signal;
const MIB = 1024 * 1024;
/** The limit of one process: what it has when it starts, and about 500 MiB for the document. */
const PROCESS_MAX_BYTES = 640 * MIB;
/** The limit of the service's growth, whatever its documents decode to. */
const GROWTH_MAX_BYTES = 128 * MIB;

async function read(reader: DocumentReader, bytes: Uint8Array, { tenantId = 'acme', signal = never } = {}): Promise<ReadDocument> {
  return reader.read({ bytes, contentType: 'application/pdf', url: 'about:blank', maxCharacters: 10_000 }, { tenantId, signal });
}

/** The most that this process and any process it started held at any look. */
class MemoryGauge implements Disposable {
  readonly #before = process.memoryUsage.rss();
  readonly #timer = setInterval(() => this.#look(), 10);
  growth = 0;
  largestChild = 0;

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.growth = Math.max(this.growth, process.memoryUsage.rss() - this.#before);
    for (const child of childrenOfThis()) this.largestChild = Math.max(this.largestChild, readPeak(child));
  }
}

function childrenOfThis(): string[] {
  return readdirSync('/proc/self/task').flatMap((thread) => readFileSync(`/proc/self/task/${thread}/children`, 'utf8').trim().split(' '));
}

function readPeak(processId: string): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/mu.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

describe('a PDF', () => {
  it('is read page by page', async () => {
    expect(await read(new DocumentReader(), smallPdf('Dear Concierge'))).toMatchObject({ text: 'Dear Concierge', isCut: false });
  });

  it('that cannot be opened is unreadable', async () => {
    await expect(read(new DocumentReader(), Buffer.from('%PDF-1.7 and then nothing'))).rejects.toThrow(UnreadableError);
  });

  it('is given up at once by a caller that goes, before and while it is read', async () => {
    const reader = new DocumentReader();
    await expect(read(reader, smallPdf('late'), { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone');
    const caller = new AbortController();
    const reading = read(reader, nestedFlatePdf(), { signal: caller.signal });
    caller.abort(new Error('gone'));
    await expect(reading).rejects.toThrow('gone');
  });
});

describe('a PDF of one kilobyte that decodes to four gigabytes', () => {
  it('takes a bounded process and no memory of the service, and no other tenant waits for it', async () => {
    const bomb = nestedFlatePdf();
    expect(bomb.length).toBeLessThan(1500);
    const reader = new DocumentReader();
    using gauge = new MemoryGauge();
    let refused = 0;
    const loud = Array.from({ length: 6 }, async () => {
      await expect(read(reader, bomb, { tenantId: 'loud' })).rejects.toThrow('within the time and memory');
      refused += 1;
    });
    expect((await read(reader, smallPdf('A neighbour'), { tenantId: 'quiet' })).text).toBe('A neighbour');
    expect(refused).toBeLessThan(loud.length);
    await Promise.all(loud);
    expect(gauge.largestChild).toBeGreaterThan(0);
    expect(gauge.largestChild).toBeLessThan(PROCESS_MAX_BYTES);
    expect(gauge.growth).toBeLessThan(GROWTH_MAX_BYTES);
  });
});
