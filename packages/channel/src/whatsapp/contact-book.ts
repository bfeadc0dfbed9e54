import type { Contact } from './wire.ts';

/**
 * The contacts that a body contains, by either of their ids: contacts and messages may be too many for a linear search.
 */
export class ContactBook {
  readonly #contacts: readonly Contact[];
  /** The first place of each id. */
  readonly #places = new Map<string, number>();

  constructor(contacts: readonly Contact[]) {
    this.#contacts = contacts;
    for (const [place, { wa_id, user_id }] of contacts.entries()) {
      for (const id of [wa_id, user_id]) if (id !== undefined && !this.#places.has(id)) this.#places.set(id, place);
    }
  }

  /** The contact who wrote the message; for a message without a sender the only contact there is. */
  contactOf(senderIds: readonly (string | undefined)[]): Contact | undefined {
    const ids = senderIds.filter((known) => known !== undefined);
    if (ids.length === 0) return this.#contacts.length === 1 ? this.#contacts[0] : undefined;
    const places = ids.map((id) => this.#places.get(id)).filter((place) => place !== undefined);
    return places.length === 0 ? undefined : this.#contacts[Math.min(...places)];
  }
}
