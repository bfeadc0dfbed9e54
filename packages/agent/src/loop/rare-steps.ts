// Steps that few turns have: compaction, and calls that a running command makes.
import type { SessionMessage, SessionSummary, TurnStep } from '@concierge/contract';

/** What a compaction does to the messages of a conversation: `moved` go to the history file. */
export function compactMessages(
  messages: readonly SessionMessage[],
  step: Extract<TurnStep, { kind: 'compaction' }>,
): { readonly moved: SessionMessage[]; readonly kept: SessionMessage[] } {
  const pruned = new Set(step.prunedIds);
  const cut = step.keepFromId === null ? messages.length : messages.findIndex((message) => message.id === step.keepFromId);
  // A cut that names a message of another version of the session moves nothing: too much context is better than a
  // lost message.
  const moved = messages.slice(0, Math.max(cut, 0));
  const kept = withNewestHeartbeat(messages.slice(moved.length)).map((message): SessionMessage =>
    message.role === 'tool' && pruned.has(message.id) ? { ...message, pruned: true } : message,
  );
  return { moved, kept };
}

export function summaryWith({ heartbeat: _known, ...summary }: SessionSummary, heartbeat: string | undefined): SessionSummary {
  return { ...summary, ...(heartbeat !== undefined && { heartbeat }) };
}

/** The same messages with the last copy of HEARTBEAT alone. */
function withNewestHeartbeat(messages: readonly SessionMessage[]): SessionMessage[] {
  const newest = messages.findLast((message) => message.role === 'user' && message.heartbeat !== undefined);
  return messages.map((message) => {
    if (message.role !== 'user' || message.heartbeat === undefined || message === newest) return message;
    const { heartbeat: _older, ...rest } = message;
    return rest;
  });
}

type NestedIntent = Extract<TurnStep, { kind: 'nested_intent' }>;
type NestedResult = Extract<TurnStep, { kind: 'nested_result' }>;

/** A call that a running command made through the dispatcher. */
export interface NestedCall {
  readonly name: string;
  /** `begun`: it may have taken effect. */
  readonly state: 'begun' | 'done' | 'failed';
}

/** The calls of one turn that were made inside other calls, kept by the call that they were made in. */
export class NestedCalls {
  readonly #byParent = new Map<string, Map<string, NestedCall>>();

  get count(): number {
    return [...this.#byParent.values()].reduce((sum, calls) => sum + calls.size, 0);
  }

  begin({ callId, parentId, name }: NestedIntent): void {
    this.#put(parentId, callId, { name, state: 'begun' });
  }

  finish({ callId, parentId, name, isError }: NestedResult): void {
    this.#put(parentId, callId, { name, state: isError ? 'failed' : 'done' });
  }

  /** The calls made inside `parentId`, each followed by those that were made inside it. */
  of(parentId: string): NestedCall[] {
    return [...(this.#byParent.get(parentId) ?? [])].flatMap(([callId, call]) => [call, ...this.of(callId)]);
  }

  #put(parentId: string, callId: string, call: NestedCall): void {
    const calls = this.#byParent.get(parentId) ?? new Map<string, NestedCall>();
    this.#byParent.set(parentId, calls.set(callId, call));
  }
}
