import { z } from 'zod';
import { randomUUID } from 'node:crypto';
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const queueName = 'pipeline';

/** One turn of a baseline pipeline, as its job carries it. */
export const PipelineTurn = z.object({ turnId: z.string(), sessionId: z.string(), text: z.string(), channel: z.string() });
export type PipelineTurn = z.infer<typeof PipelineTurn>;

/** `<turn id> <1 when the turn ends>\n<rendered SSE>` */
export function encode(turnId: string, ends: boolean, sse: string): string {
  return `${turnId} ${ends ? '1' : '0'}\n${sse}`;
}

export function decode(message: string): { readonly turnId: string; readonly ends: boolean; readonly sse: string } {
  const space = message.indexOf(' ');
  const line = message.indexOf('\n');
  return { turnId: message.slice(0, space), ends: message[space + 1] === '1', sse: message.slice(line + 1) };
}

export type Messages = readonly { readonly role: string; readonly text: string }[];

/**
 * A session as the durable pipeline keeps it: one file, read and written once per turn, on disk before the turn's end
 * is announced.
 */
export class SessionFile {
  readonly #folder: string;
  readonly #path: string;

  constructor(folder: string, sessionId: string) {
    this.#folder = folder;
    this.#path = join(folder, `${sessionId}.json`);
  }

  async read(): Promise<Messages> {
    try {
      // Not validated: the baseline does as little as possible.
      const messages: Messages = JSON.parse(await readFile(this.#path, 'utf8'));
      return messages;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw error;
    }
  }

  /** Temp, fsync, rename, fsync of the folder. */
  async write(messages: Messages): Promise<void> {
    const temporary = join(this.#folder, `.tmp-${randomUUID()}`);
    await writeFile(temporary, JSON.stringify(messages), { flush: true });
    await rename(temporary, this.#path);
    const folder = await open(this.#folder, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}
