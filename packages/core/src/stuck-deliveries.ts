import {
  AppError,
  EventId,
  TenantId,
  type EventView,
  type RedriveBody,
  type Redriven,
  type RedriveSkip,
  type StuckDeliveries,
} from '@concierge/contract';
import { endpointIdOfEvent, type Delivery, type TenantScope, type Tenants } from '@concierge/tenant';
import type { Asked, TenantOperations } from './tenant-operations.ts';

/** Messages, or events, of one tenant and kind that one look reads. */
const READ_PER_TENANT = 500;
/** Dead letters that one step of a redrive reads at most, and tenants whose names it lists. */
const LOOKED_AT_PER_STEP = 200;
const TENANTS_PER_STEP = 200;
/** Between the tenant and the id of its letter. */
const CURSOR_MARK = '/';

export interface DeadLettersOptions {
  readonly tenants: Pick<Tenants, 'list' | 'find'>;
  readonly operations: Pick<TenantOperations, 'open' | 'record'>;
}

interface StuckQuery {
  readonly tenant?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** What of all tenants has not arrived, for the command line and the operators' API alike. */
export class DeadLetters {
  readonly #options: DeadLettersOptions;

  constructor(options: DeadLettersOptions) {
    this.#options = options;
  }

  /** By tenant and channel, of `limit` tenants. @throws AppError not_found */
  async list({ tenant, limit, cursor }: StuckQuery): Promise<{ readonly items: StuckDeliveries[]; readonly nextCursor: string | null }> {
    const ids = (await this.#listTenants(tenant)).filter((id) => cursor === undefined || id > cursor);
    const page = ids.slice(0, limit);
    const items: StuckDeliveries[] = [];
    for (const id of page) {
      const scope = await this.#options.tenants.find(id);
      if (scope !== undefined) items.push(...(await sumMessages(scope)), ...(await sumEvents(scope)));
    }
    return { items, nextCursor: ids.length > page.length ? (page.at(-1) ?? null) : null };
  }

  /** Sends one again, a message or a webhook event. @throws AppError not_found, conflict */
  async redriveOne({ tenantId, id }: { readonly tenantId: string; readonly id: string }, asked?: Asked): Promise<void> {
    await this.#redrive(await this.#options.operations.open(tenantId), id, asked);
  }

  /** Sends a few again; a dry run only counts. @throws AppError not_found, invalid_request */
  async redriveSome({ tenant, channel, dryRun, limit, cursor }: RedriveBody, asked?: Asked): Promise<Redriven> {
    const redriven: Redriven['redriven'] = [];
    const counted = new Map<string, number>();
    const skipped = new Map<RedriveSkip, number>();
    let nextCursor: string | null = null;
    let read = 0;
    for await (const { scope, id, next } of this.#walk(tenant, channel, readCursor(cursor))) {
      nextCursor = next;
      if (scope === undefined) continue;
      const letter = await findLetter(scope, id, channel);
      read += 1;
      const outcome = letter === 'dead' && !dryRun ? await this.#redriveIfTaken(scope, id, asked) : letter;
      if (outcome === 'dead') {
        counted.set(scope.tenantId, (counted.get(scope.tenantId) ?? 0) + 1);
        if (!dryRun) redriven.push({ tenantId: scope.tenantId, id });
      } else if (outcome !== 'other') skipped.set(outcome, (skipped.get(outcome) ?? 0) + 1);
      if (redriven.length >= limit || read >= LOOKED_AT_PER_STEP) break;
    }
    const tenants = Array.from(counted, ([tenantId, deliveries]) => ({ tenantId, deliveries }));
    return {
      dryRun,
      deliveries: tenants.reduce((sum, { deliveries }) => sum + deliveries, 0),
      tenants: tenants.toSorted((one, other) => other.deliveries - one.deliveries),
      redriven,
      skipped: Array.from(skipped, ([reason, deliveries]) => ({ reason, deliveries })),
      nextCursor,
    };
  }

  async #redriveIfTaken(scope: TenantScope, id: string, asked: Asked | undefined): Promise<'dead' | 'refused'> {
    try {
      await this.#redrive(scope, id, asked);
      return 'dead';
    } catch (error) {
      // Another has taken it up, or nothing can be sent there.
      if (error instanceof AppError && (error.code === 'conflict' || error.code === 'not_found')) return 'refused';
      throw error;
    }
  }

  async #redrive(scope: TenantScope, id: string, asked: Asked | undefined): Promise<void> {
    const isEvent = EventId.safeParse(id).success;
    if (isEvent) await scope.events.redrive(id);
    else await scope.outbox.redrive(id, { kind: 'operator' });
    const act = isEvent ? 'event.redrive' : 'delivery.redrive';
    await this.#options.operations.record(act, { scope, target: id, ...(asked !== undefined && { asked }) });
  }

  async #listTenants(tenant: string | undefined): Promise<readonly string[]> {
    return tenant === undefined ? this.#options.tenants.list() : [(await this.#options.operations.open(tenant)).tenantId];
  }

  /** Ids of dead letters, by tenant and then by id. A step without a scope only moves on. */
  async *#walk(
    tenant: string | undefined,
    channel: RedriveBody['channel'],
    from: Place | undefined,
  ): AsyncGenerator<{ scope?: TenantScope; id: string; next: string | null }, void, undefined> {
    const all = await this.#listTenants(tenant);
    const ids = all.filter((id) => from === undefined || id > from.tenantId || (id === from.tenantId && from.letter !== undefined));
    for (const [index, tenantId] of ids.entries()) {
      const scope = await this.#options.tenants.find(tenantId);
      const behind = from?.tenantId === tenantId ? from.letter : undefined;
      const letters = scope === undefined ? [] : (await listDeadIds(scope, channel)).filter((id) => behind === undefined || id > behind);
      const afterTenant = index === ids.length - 1 ? null : tenantId;
      for (const [at, id] of letters.entries())
        yield {
          ...(scope !== undefined && { scope }),
          id,
          next: at === letters.length - 1 ? afterTenant : `${tenantId}${CURSOR_MARK}${id}`,
        };
      if (letters.length === 0) yield { id: '', next: afterTenant };
      if (index + 1 >= TENANTS_PER_STEP) return;
    }
  }
}

interface Place {
  readonly tenantId: string;
  readonly letter: string | undefined;
}

function readCursor(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  const [tenantId = '', letter] = cursor.split(CURSOR_MARK, 2);
  if (TenantId.safeParse(tenantId).success) return { tenantId, letter };
  throw new AppError('invalid_request', undefined, { errors: [{ path: 'cursor', message: 'is not from a page of this list' }] });
}

/** Sorted; read from names alone. Events of endpoints that are gone can go nowhere. */
async function listDeadIds({ outbox, events }: TenantScope, channel: RedriveBody['channel']): Promise<string[]> {
  const messages = channel === 'events' ? [] : await outbox.deadIds();
  const endpoints = channel === undefined || channel === 'events' ? await events.endpoints.list() : [];
  const dead = await Promise.all(endpoints.map(async ({ id }) => events.files.listDeadEvents(id, 0)));
  return [...messages, ...dead.flat()].toSorted();
}

/** `other`: not one of those that are asked for, or no longer dead. */
async function findLetter(
  { outbox, events }: TenantScope,
  id: string,
  channel: RedriveBody['channel'],
): Promise<'dead' | 'other' | RedriveSkip> {
  if (EventId.safeParse(id).success) return (await events.endpoints.blockedReason(endpointIdOfEvent(id))) === null ? 'dead' : 'refused';
  const delivery = await outbox.delivery(id);
  if (delivery === undefined || (channel !== undefined && delivery.message.channel !== channel)) return 'other';
  if (delivery.state === 'unknown' || delivery.state === 'withheld') return delivery.state;
  return delivery.state === 'failed' || delivery.state === 'expired' ? 'dead' : 'other';
}

interface Seen {
  readonly channel: string;
  readonly id: string;
  readonly acceptedAt: string;
  readonly state: 'waiting' | 'retrying' | 'dead';
  readonly problem: string | null;
}

async function sumMessages({ tenantId, outbox }: TenantScope): Promise<StuckDeliveries[]> {
  const [waiting, ids] = [await outbox.onTheirWay(), await outbox.deadIds()];
  const read = await Promise.all(ids.slice(0, READ_PER_TENANT).map(async (id) => outbox.delivery(id)));
  const dead = read.filter((delivery) => delivery !== undefined);
  const seen = waiting.map((delivery) => seeMessage(delivery, wasTried(delivery) ? 'retrying' : 'waiting'));
  return sum(tenantId, [...seen, ...dead.map((delivery) => seeMessage(delivery, 'dead'))], ids.length <= READ_PER_TENANT);
}

function wasTried({ parts = [] }: Delivery): boolean {
  return parts.some(({ state, tries }) => state === 'waiting' && tries > 0);
}

function seeMessage({ message, problem }: Delivery, state: Seen['state']): Seen {
  const { channel, id, acceptedAt } = message;
  return { channel, id, acceptedAt, state, problem: problem?.code ?? null };
}

async function sumEvents({ tenantId, events }: TenantScope): Promise<StuckDeliveries[]> {
  const [waiting, dead] = [
    await events.list({ status: 'waiting', limit: READ_PER_TENANT }),
    await events.list({ status: 'dead', limit: READ_PER_TENANT }),
  ];
  const see = ({ id, timestamp, status, tries, reason }: EventView): Seen => ({
    channel: 'events',
    id,
    acceptedAt: timestamp,
    state: status === 'dead' ? 'dead' : tries > 0 ? 'retrying' : 'waiting',
    problem: reason,
  });
  const isWhole = waiting.items.length < READ_PER_TENANT && dead.items.length < READ_PER_TENANT;
  return sum(tenantId, [...waiting.items, ...dead.items].map(see), isWhole);
}

/** One entry for each channel of which there is anything. */
function sum(tenantId: string, seen: readonly Seen[], isWhole: boolean): StuckDeliveries[] {
  const channels = [...new Set(seen.map(({ channel }) => channel))].toSorted();
  return channels.map((channel) => {
    const own = seen.filter((one) => one.channel === channel).toSorted((one, other) => one.acceptedAt.localeCompare(other.acceptedAt));
    const waiting = own.filter(({ state }) => state !== 'dead');
    const dead = own.filter(({ state }) => state === 'dead');
    const last = dead.at(-1);
    return {
      tenantId,
      channel,
      waiting: waiting.length,
      retrying: own.filter(({ state }) => state === 'retrying').length,
      dead: dead.length,
      isWhole,
      oldestWaitingAt: waiting[0]?.acceptedAt ?? null,
      lastDead: last === undefined ? null : { id: last.id, acceptedAt: last.acceptedAt, problem: last.problem },
    };
  });
}
