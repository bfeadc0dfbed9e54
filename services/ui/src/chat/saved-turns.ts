import { channelNames, UploadRef } from '@concierge/contract';
import { z } from 'zod';

/**
 * A message that is not stored in its session yet: enough to show it, to follow its turn, and to send it again as the
 * same one.
 */
const SavedTurn = z.object({
  key: z.string(),
  turnId: z.string().nullable(),
  question: z.object({ text: z.string(), attachments: z.array(UploadRef), at: z.string() }),
  body: z.object({
    message: z.string(),
    contact_id: z.string().optional(),
    sender: z.string().optional(),
    channel: z.enum(channelNames).optional(),
    attachments: z.array(z.string()).optional(),
  }),
});
export type SavedTurn = z.infer<typeof SavedTurn>;

const SavedTurns = z.array(SavedTurn);

const Played = z.array(z.string());
/** The most that are kept; the oldest are forgotten. */
const PLAYED_AT_MOST = 200;
const PLAYED = 'concierge.played';

/** The part of the browser's session storage that is used. */
export interface TextStorage {
  getItem(name: string): string | null;
  setItem(name: string, text: string): void;
  removeItem(name: string): void;
}

/**
 * Keeps the messages under way of each conversation over a reload of this tab. Without storage (or a full one) a reload
 * forgets them; the service does not.
 */
export class SavedTurnStore {
  readonly #storage: TextStorage;

  constructor(storage: TextStorage) {
    this.#storage = storage;
  }

  load(conversation: string): SavedTurn[] {
    try {
      return SavedTurns.parse(JSON.parse(this.#storage.getItem(storageName(conversation)) ?? '[]'));
    } catch {
      return [];
    }
  }

  save(conversation: string, turns: readonly SavedTurn[]): void {
    try {
      if (turns.length === 0) this.#storage.removeItem(storageName(conversation));
      else this.#storage.setItem(storageName(conversation), JSON.stringify(turns));
    } catch {
      // Nothing to do: see above.
    }
  }

  /** Remembers that this tab plays the contact of a conversation: it may go on writing in the contact's place. */
  markPlayed(contactId: string): void {
    try {
      const others = this.#played().filter((other) => other !== contactId);
      this.#storage.setItem(PLAYED, JSON.stringify([...others, contactId].slice(-PLAYED_AT_MOST)));
    } catch {
      // Without storage a reload shows it as a customer's conversation, in which nothing can be written by mistake.
    }
  }

  isPlayed(contactId: string): boolean {
    try {
      return this.#played().includes(contactId);
    } catch {
      return false;
    }
  }

  #played(): string[] {
    return Played.parse(JSON.parse(this.#storage.getItem(PLAYED) ?? '[]'));
  }
}

function storageName(conversation: string): string {
  return `concierge.turns.${conversation}`;
}
