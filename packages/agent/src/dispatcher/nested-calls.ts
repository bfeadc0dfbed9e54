import type { TurnStep } from '@concierge/contract';

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
