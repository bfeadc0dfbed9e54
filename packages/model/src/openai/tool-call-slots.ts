import { randomUUID } from 'node:crypto';
import type { ToolCall } from '@concierge/contract';
import type { ToolCallDelta } from './chunk.ts';

interface Slot {
  readonly index: number;
  id: string;
  name: string;
  arguments: string;
}

/** Puts tool calls together from their deltas. */
export class ToolCallSlots {
  readonly #slots: Slot[] = [];

  get size(): number {
    return this.#slots.length;
  }

  add(delta: ToolCallDelta): void {
    const slot = this.#slotOf(delta);
    if (delta.id) slot.id = delta.id;
    // Assigned, not appended: some servers repeat the whole name with every delta.
    if (delta.function?.name) slot.name = delta.function.name;
    slot.arguments += delta.function?.arguments ?? '';
  }

  /** Did some call never get a name? It cannot be run, nor sent back in the history. */
  get nameless(): boolean {
    return this.#slots.some((slot) => slot.name === '');
  }

  /** Ids are kept where the provider gave one that is unique here. */
  finish(): ToolCall[] {
    const taken = new Set<string>();
    return this.#slots.map(({ id, name, arguments: text }) => {
      const unique = id === '' || taken.has(id) ? `call_${randomUUID().replaceAll('-', '')}` : id;
      taken.add(unique);
      return { id: unique, name, arguments: text };
    });
  }

  /**
   * Finds a call by index, but a delta with another id and name opens a new call: servers in front of Gemini send every
   * parallel call with index 0 (https://github.com/QuantumNous/new-api/pull/2701), others send no index at all.
   */
  #slotOf(delta: ToolCallDelta): Slot {
    const index = delta.index ?? this.#slots.at(-1)?.index ?? 0;
    const slot = this.#slots.findLast((candidate) => candidate.index === index);
    const startsAnother = slot !== undefined && delta.id && slot.id !== '' && delta.id !== slot.id && delta.function?.name;
    if (slot !== undefined && !startsAnother) return slot;
    const opened = { index, id: '', name: '', arguments: '' };
    this.#slots.push(opened);
    return opened;
  }
}
