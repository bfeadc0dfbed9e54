import { AppError, type OperatedTurn, type TurnStatus, type TurnTrace, type TurnView } from '@concierge/contract';
import type { Turns } from '@concierge/turn';
import { walkTenants, type TenantWalkOptions } from './tenant-walk.ts';

export interface OperatedTurnsOptions extends TenantWalkOptions {
  readonly turns: () => Promise<Turns>;
}

/** Which turns are meant; a part that is left out is no condition. */
export interface OperatedTurnsQuery {
  readonly limit: number;
  readonly tenant?: string | undefined;
  readonly status?: TurnStatus | undefined;
  /** Of the error. */
  readonly code?: string | undefined;
  /** Of a turn or of a conversation. */
  readonly id?: string | undefined;
  readonly cursor?: string | undefined;
}

/** Turns of all tenants, live and ended, for the command line and the operators' API alike. */
export class OperatedTurns {
  readonly #options: OperatedTurnsOptions;

  constructor(options: OperatedTurnsOptions) {
    this.#options = options;
  }

  /**
   * One page: tenants by id, and of each the last accepted turn first. It may have fewer turns than asked for, and even
   * none, and still be followed by another.
   * @throws AppError not_found, invalid_request
   */
  async list({
    limit,
    tenant,
    cursor,
    ...filter
  }: OperatedTurnsQuery): Promise<{ readonly items: OperatedTurn[]; readonly nextCursor: string | null }> {
    const turns = await this.#options.turns();
    const items: OperatedTurn[] = [];
    let nextCursor: string | null = null;
    const steps = walkTenants<TurnView>(this.#options, {
      tenant,
      cursor,
      read: async (scope, place) => turns.list(scope, { ...filter, limit: limit - items.length, cursor: place }),
    });
    for await (const { scope, items: found, next } of steps) {
      if (scope !== undefined) items.push(...found.map((turn) => ({ tenantId: scope.tenantId, ...turn })));
      nextCursor = next;
      if (items.length >= limit) break;
    }
    return { items, nextCursor };
  }

  /** The life of one turn. @throws AppError not_found */
  async trace({ tenantId, turnId }: { readonly tenantId: string; readonly turnId: string }): Promise<TurnTrace> {
    const scope = await this.#options.operations.open(tenantId);
    const trace = await (await this.#options.turns()).trace(scope, turnId);
    if (trace === undefined) throw new AppError('not_found', `${tenantId} has no turn ${turnId}.`);
    return trace;
  }
}
