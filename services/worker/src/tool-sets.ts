import { ToolSet, type Tool, type ToolAccess } from '@concierge/agent';

const KEPT_MAX = 1000;

/** Tool sets by what decides them, so that turns of one kind of agent share one. */
export class ToolSets {
  readonly #tools: readonly Tool[];
  readonly #kept = new Map<string, ToolSet>();

  constructor(tools: readonly Tool[]) {
    this.#tools = tools;
  }

  /** `attached`: tools that this one turn has beside ours; most have none. */
  of(
    { access, allow }: { readonly access: ToolAccess; readonly allow: readonly string[] | undefined },
    attached: readonly Tool[],
  ): ToolSet {
    if (attached.length > 0) return new ToolSet([...this.#tools, ...attached], access, allow);
    const key = JSON.stringify([access, allow]);
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    // Allow-lists are the tenants' own; as many as there are tenants must not pile up.
    if (this.#kept.size >= KEPT_MAX) this.#kept.clear();
    const set = new ToolSet(this.#tools, access, allow);
    this.#kept.set(key, set);
    return set;
  }
}
