import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const LIBRARIES = '/usr/lib';
/** The one for programs with several threads. */
const LIBRARY = 'faketime/libfaketimeMT.so.1';
/** The library looks at a clock's file again after a second, and counts whole seconds. */
const SEEN_AFTER_MS = 2500;

/** Where Debian's `faketime` keeps the library; undefined when it is not installed. */
export function findFakeTime(): string | undefined {
  return readdirSync(LIBRARIES)
    .filter((name) => name.endsWith('-linux-gnu'))
    .flatMap((machine) => {
      const folder = join(LIBRARIES, machine, 'faketime');
      return exists(folder) ? [join(LIBRARIES, machine, LIBRARY)] : [];
    })[0];
}

function exists(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}

/**
 * Wall clocks of single processes, stepped while these run. What measures durations, the monotonic clock, stays what it
 * is.
 */
export class SteppedClocks implements Disposable {
  readonly #library: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'concierge-clocks-'));

  constructor(library: string) {
    this.#library = library;
  }

  /** What a process of this name is started with. */
  environmentOf(name: string): Record<string, string> {
    this.#write(name, 0);
    return {
      // Redis' own allocator asks for the time before the library can answer: it gets the C library's allocator
      // instead.
      LD_PRELOAD: name === 'redis' ? `${this.#library}:libc.so.6` : this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#fileOf(name),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // Times of files are those of the disk.
      NO_FAKE_STAT: '1',
    };
  }

  /** Resolves when the process sees it. */
  async step(name: string, offsetSeconds: number): Promise<void> {
    this.#write(name, offsetSeconds);
    await wait(SEEN_AFTER_MS);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #fileOf(name: string): string {
    return join(this.#folder, name);
  }

  #write(name: string, offsetSeconds: number): void {
    writeFileSync(this.#fileOf(name), `${offsetSeconds < 0 ? '' : '+'}${String(offsetSeconds)}\n`);
  }
}
