import { randomBytes } from 'node:crypto';
import {
  DAY_MS,
  HOUR_MS,
  AppError,
  EventEndpoint,
  EventEndpointHealth,
  limits,
  NewEventEndpoint,
  type EventEndpointPatch,
  type EventEndpointView,
  type EventEndpointWithSecret,
  type EventType,
  parseInput,
  toStoredSchema,
} from '@concierge/contract';
import { RecordFolder, StatCache, unlessLater, type FolderSync, type Parsed } from '@concierge/files';
import { KeyedMutex, type Log } from '@concierge/runtime';
import type { z } from 'zod';
import type { TenantSecrets } from '../tenant-secrets.ts';

const SECRET_BYTES = 32;

export interface EventEndpointsOptions {
  readonly tenantId: string;
  /** tenants/<id>/events/endpoints */
  readonly folder: string;
  /** tenants/<id>/events */
  readonly store: string;
  readonly folders: FolderSync;
  readonly secrets: TenantSecrets;
  readonly log: Log;
  readonly now?: (() => number) | undefined;
}

/** An endpoint as its sender needs it. */
export interface OpenEndpoint {
  readonly id: string;
  readonly url: string;
  /** `whsec_…`; each of them signs. */
  readonly secrets: readonly string[];
}

interface Known {
  readonly endpoint: EventEndpoint;
  readonly health: EventEndpointHealth | undefined;
}

/**
 * The endpoints that a tenant wants webhook events sent to: a file each, secrets sealed. What senders find out about
 * one is a file beside it.
 */
export class EventEndpoints {
  readonly #options: EventEndpointsOptions;
  readonly #records: RecordFolder<typeof EventEndpoint>;
  readonly #healths: RecordFolder<typeof EventEndpointHealth>;
  readonly #writers = new KeyedMutex();
  /** Every turn asks which endpoints want its events: one look at the folder, as long as nothing in it has changed. */
  readonly #known = new StatCache<readonly Known[]>(1);

  constructor(options: EventEndpointsOptions) {
    const { folder, store, folders, tenantId, log } = options;
    this.#options = options;
    const place = { folder, store, folders, tenantId, log };
    this.#records = new RecordFolder({ ...place, schema: EventEndpoint, names: /^ep_[0-9a-f]{12}$/u });
    this.#healths = new RecordFolder({ ...place, schema: EventEndpointHealth, names: /^ep_[0-9a-f]{12}\.health$/u });
  }

  /** The oldest first; what cannot be read last. */
  async list(): Promise<EventEndpointView[]> {
    const known = await this.#all();
    const good = known.map((one) => this.#toEndpointView(one));
    const broken = (await this.#records.names()).filter((id) => !known.some(({ endpoint }) => endpoint.id === id));
    return [...good, ...(await Promise.all(broken.map(async (id) => brokenView(id, await this.#records.read(id)))))];
  }

  /** @throws AppError not_found */
  async get(id: string): Promise<EventEndpointView> {
    const view = (await this.list()).find((one) => one.id === id);
    if (view === undefined) throw noSuchEndpoint();
    return view;
  }

  /** On disk when it returns. @throws AppError invalid_request, conflict (as many as there may be) */
  async create(request: z.input<typeof NewEventEndpoint>): Promise<EventEndpointWithSecret> {
    const wanted = parseInput(NewEventEndpoint, request, 'The endpoint');
    return this.#writers.run('create', async () => {
      if ((await this.#records.names()).length >= limits.eventEndpointsMax)
        throw new AppError(
          'conflict',
          `There are ${String(limits.eventEndpointsMax)} endpoints, as many as there may be: remove one first.`,
        );
      const id = `ep_${randomBytes(6).toString('hex')}`;
      const secret = newSecret();
      const at = this.#now();
      const sealed = this.#options.secrets.seal(toSecretName(id), secret);
      await this.#records.create(id, { version: 1, id, ...wanted, secret: sealed, previous: null, createdAt: at, updatedAt: at });
      return { ...(await this.get(id)), secret };
    });
  }

  /** `enabled: true` forgets that it has failed. @throws AppError not_found, conflict */
  async update(id: string, patch: EventEndpointPatch): Promise<EventEndpointView> {
    const changes = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
    await this.#writers.run(id, async () => {
      const changed = { ...(await this.#existing(id)), ...changes, updatedAt: this.#now() };
      await this.#records.put(id, toStoredSchema(EventEndpoint).parse(changed));
      if (patch.enabled === true) await this.#healths.remove(toHealthName(id));
    });
    return this.get(id);
  }

  /** The old secret signs along for a while. @throws AppError not_found, conflict */
  async rotateSecret(id: string): Promise<EventEndpointWithSecret> {
    const secret = newSecret();
    await this.#writers.run(id, async () => {
      const before = await this.#existing(id);
      const until = new Date(this.#nowMs() + limits.eventSecretOverlapHours * HOUR_MS).toISOString();
      const sealed = this.#options.secrets.seal(toSecretName(id), secret);
      // One that cannot be opened any more signs nothing.
      const previous = this.#opened(id, before.secret) === undefined ? null : { secret: before.secret, until };
      await this.#records.put(id, { ...before, secret: sealed, previous, updatedAt: this.#now() });
    });
    return { ...(await this.get(id)), secret };
  }

  /** @throws AppError not_found */
  async remove(id: string): Promise<void> {
    await this.#writers.run(id, async () => {
      if (!(await this.#records.remove(id))) throw noSuchEndpoint();
      await this.#healths.remove(toHealthName(id));
    });
  }

  /** The endpoints that subscribe to this event. */
  async subscribed(type: EventType): Promise<readonly EventEndpoint[]> {
    const usable = (await this.#all()).filter((one) => isUsable(one)).map(({ endpoint }) => endpoint);
    return usable.filter(({ types }) => types === null || types.some((wanted) => wanted === type));
  }

  /**
   * Makes sure that there is one for this URL: when there is none, makes one that gets no other events.
   * @throws AppError conflict
   */
  async ensure(url: string): Promise<void> {
    await this.#writers.run(`url ${url}`, async () => {
      if ((await this.#ofUrl(url)) === undefined) await this.create({ url, types: [], description: 'Replies of schedules' });
    });
  }

  /** The one that can be sent to by this URL. @throws AppError conflict, with the reason why there is none */
  async usableAt(url: string): Promise<EventEndpoint> {
    const known = await this.#ofUrl(url);
    if (known === undefined)
      throw new AppError('conflict', 'There is no event endpoint with this URL any more: save the schedule again, or make one.');
    if (!isUsable(known)) throw new AppError('conflict', `Its event endpoint ${known.endpoint.id} is disabled.`);
    return known.endpoint;
  }

  /**
   * The endpoint for sending now, disabled or not.
   * @throws AppError not_found, conflict when its secret cannot be read
   */
  async open(id: string): Promise<OpenEndpoint> {
    const { url, secret, previous } = await this.#existing(id);
    const current = this.#opened(id, secret);
    if (current === undefined)
      throw new AppError('conflict', 'The secret of the endpoint cannot be read here: give it a new one (rotate-secret).');
    const isOverlap = previous !== null && Date.parse(previous.until) > this.#nowMs();
    const old = isOverlap ? this.#opened(id, previous.secret) : undefined;
    return { id, url, secrets: old === undefined ? [current] : [current, old] };
  }

  /** Why nothing may be sent to it; null when it may. @throws LaterVersionError */
  async blockedReason(id: string): Promise<string | null> {
    const known = (await this.#all()).find(({ endpoint }) => endpoint.id === id);
    if (known === undefined) {
      const isThere = (await this.#records.names()).includes(id);
      await this.#records.find(id);
      return isThere ? 'The file of its endpoint cannot be read.' : 'Its endpoint was removed.';
    }
    if (this.#opened(id, known.endpoint.secret) === undefined) return 'The secret of its endpoint cannot be read.';
    return isUsable(known) ? null : `Its endpoint is disabled. ${explainState(known) ?? ''}`.trim();
  }

  async noteSuccess(id: string): Promise<void> {
    if (((await this.#all()).find(({ endpoint }) => endpoint.id === id)?.health ?? null) === null) return;
    await this.#writers.run(id, async () => {
      await this.#healths.remove(toHealthName(id));
    });
  }

  /** `isGone`: the endpoint itself wants no more events. True when it is disabled from now on. */
  async noteFailure(id: string, { isGone }: { readonly isGone: boolean }): Promise<boolean> {
    return this.#writers.run(id, async () => {
      const known = (await this.#all()).find(({ endpoint }) => endpoint.id === id);
      if (known === undefined || known.health?.disabledReason != null) return false;
      const failingSince = known.health?.failingSince ?? this.#now();
      const disabledReason = isGone ? 'It answered 410 Gone.' : this.#tooLong(failingSince);
      if (known.health === undefined || disabledReason !== null)
        await this.#healths.put(toHealthName(id), { ...known.health, version: 1, failingSince, disabledReason });
      return disabledReason !== null;
    });
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
  }

  #tooLong(failingSince: string): string | null {
    const days = limits.eventEndpointFailingDays;
    if (this.#nowMs() - Date.parse(failingSince) < days * DAY_MS) return null;
    return `No try has succeeded since ${failingSince}, for ${String(days)} days. Enable it again when it works.`;
  }

  async #ofUrl(url: string): Promise<Known | undefined> {
    const all = (await this.#all()).filter(({ endpoint }) => endpoint.url === url);
    return all.find((known) => isUsable(known)) ?? all[0];
  }

  async #all(): Promise<readonly Known[]> {
    return (await this.#known.get(this.#options.folder, async () => this.#readAll())) ?? [];
  }

  async #readAll(): Promise<Known[]> {
    const known: Known[] = [];
    for (const id of await this.#records.names()) {
      const endpoint = await unlessLater(this.#records.find(id));
      if (endpoint?.id === id) known.push({ endpoint, health: await unlessLater(this.#healths.find(toHealthName(id))) });
    }
    return known.toSorted((a, b) => a.endpoint.createdAt.localeCompare(b.endpoint.createdAt) || a.endpoint.id.localeCompare(b.endpoint.id));
  }

  async #existing(id: string): Promise<EventEndpoint> {
    const endpoint = await this.#records.find(id);
    if (endpoint?.id === id) return endpoint;
    if ((await this.#records.names()).includes(id))
      throw new AppError('conflict', 'The file of the endpoint cannot be read: remove it and make another.');
    throw noSuchEndpoint();
  }

  #opened(id: string, sealed: string): string | undefined {
    try {
      return this.#options.secrets.open(toSecretName(id), sealed);
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  #toEndpointView(known: Known): EventEndpointView {
    const { secret, url, description, types, includeText, enabled, createdAt, updatedAt } = known.endpoint;
    const shown = { id: known.endpoint.id, url, description, types, includeText, enabled, createdAt, updatedAt };
    const isReadable = this.#opened(shown.id, secret) !== undefined;
    const failingSince = known.health?.failingSince ?? null;
    if (!isReadable) return { ...shown, state: 'broken', reason: 'Its secret cannot be read here: give it a new one.', failingSince };
    return { ...shown, state: isUsable(known) ? 'enabled' : 'disabled', reason: explainState(known), failingSince };
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString();
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function isUsable({ endpoint, health }: Known): boolean {
  return endpoint.enabled && (health?.disabledReason ?? null) === null;
}

function explainState({ endpoint, health }: Known): string | null {
  if (!endpoint.enabled) return 'It was disabled by its owner.';
  return health?.disabledReason ?? null;
}

function brokenView(id: string, read: Parsed<EventEndpoint> | undefined): EventEndpointView {
  const nothing = { url: '', description: '', types: [], includeText: false, enabled: false };
  const isLater = read?.status === 'broken' && read.isLater === true;
  const reason = isLater ? read.reason : 'Its file cannot be read: remove it and make another.';
  return { id, ...nothing, state: 'broken', reason, failingSince: null, createdAt: null, updatedAt: null };
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

function toHealthName(id: string): string {
  return `${id}.health`;
}

function toSecretName(id: string): string {
  return `events/endpoints/${id}.secret`;
}

function noSuchEndpoint(): AppError {
  return new AppError('not_found', 'There is no such event endpoint.');
}
