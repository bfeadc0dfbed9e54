import type { ChatReply, TerminalEvent, TurnEvent } from '@concierge/contract';

export type FoldedTurn =
  | { readonly kind: 'done'; readonly reply: ChatReply }
  | { readonly kind: 'error'; readonly error: Extract<TerminalEvent, { type: 'error' }>['data'] };

interface OpenCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
  output: string;
  isError: boolean;
  hasEnded: boolean;
}

/** Folds a whole stream into the single JSON reply: its text is every delta that was not made void, joined. */
export class TurnFold {
  #contactId = '';
  #turnId = '';
  /** Text up to the last tool result: no reset reaches back behind it. */
  #settled = '';
  #text = '';
  readonly #calls = new Map<string, OpenCall>();

  /** The valid text so far. */
  get text(): string {
    return this.#settled + this.#text;
  }

  /** Ids of the calls that have a result, in the order of their starts. */
  get endedCalls(): string[] {
    return [...this.#calls.values()].filter(({ hasEnded }) => hasEnded).map(({ id }) => id);
  }

  /** @returns the outcome once the terminal event has been given, else null */
  add(event: TurnEvent): FoldedTurn | null {
    switch (event.type) {
      case 'session': {
        this.#contactId = event.data.contact_id;
        this.#turnId = event.data.turnId;
        return null;
      }
      case 'text_delta': {
        this.#text += event.data.delta;
        return null;
      }
      case 'text_reset': {
        this.#forget(event.data.reason);
        return null;
      }
      case 'tool_call_start': {
        this.#calls.set(event.data.id, { ...event.data, output: '', isError: false, hasEnded: false });
        return null;
      }
      case 'tool_call_progress':
      case 'tool_call_end': {
        return null;
      }
      case 'tool_result': {
        const call = this.#calls.get(event.data.id);
        if (call !== undefined) Object.assign(call, { output: event.data.output, isError: event.data.isError, hasEnded: true });
        this.#settled += this.#text;
        this.#text = '';
        return null;
      }
      case 'done': {
        const { finishReason, ...usage } = event.data;
        return {
          kind: 'done',
          reply: {
            contact_id: this.#contactId,
            turnId: this.#turnId,
            reply: this.text,
            toolCalls: [...this.#calls.values()].map(({ hasEnded: _hasEnded, ...call }) => call),
            usage,
            finishReason,
          },
        };
      }
      case 'error': {
        return { kind: 'error', error: event.data };
      }
    }
  }

  #forget(reason: Extract<TurnEvent, { type: 'text_reset' }>['data']['reason']): void {
    this.#text = '';
    if (reason !== 'stream_lost') return;
    this.#settled = '';
    this.#calls.clear();
  }
}
