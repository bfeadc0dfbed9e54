import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { keyOf } from '@concierge/turn';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { withoutComments } from './sse.ts';
import { atRest, TestGateway, type TestTenant } from './test-gateway.ts';

const Made = z.object({ id: z.string() });
const Replied = z.object({ contact_id: z.string() });
const Listed = z.array(z.object({ id: z.string(), status: z.string(), cancelling: z.boolean().optional() }));

let gateway: TestGateway;
setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

/** One client of a feed, and what it has been told. */
class Feed implements Disposable {
  readonly #gone = new AbortController();
  text = '';
  isOver = false;

  static async open(key: string | undefined, path = '/api/feed'): Promise<Feed> {
    const feed = new Feed();
    const response = await gateway.open(key, path, { signal: feed.#gone.signal });
    if (response.status !== 200) throw new Error(await response.text());
    void feed.#read(response);
    await eventually(() => withoutComments(feed.text).startsWith('event: again\ndata: {}\n\n'));
    return feed;
  }

  /** Ids that an event of this kind has named. */
  ids(kind: string): readonly string[] {
    return this.#facts(kind).map(({ id }) => z.string().parse(id));
  }

  /** Tenants of which an event of this kind was told to operators. */
  tenants(kind: string): readonly string[] {
    return this.#facts(kind).map(({ tenantId }) => z.string().parse(tenantId));
  }

  /** States that turns were told to be in. */
  states(): readonly unknown[] {
    return this.#facts('turn').map(({ status }) => status);
  }

  againCount(): number {
    return this.text.split('event: again\n').length - 1;
  }

  [Symbol.dispose](): void {
    this.#gone.abort();
  }

  #facts(kind: string): readonly Record<string, unknown>[] {
    // With its end: the last one may have come in part.
    const events = this.text.matchAll(/^event: (?<kind>\w+)\ndata: (?<data>.+)\n\n/gmu);
    return [...events].flatMap(({ groups }) =>
      groups?.['kind'] === kind ? [z.record(z.string(), z.unknown()).parse(JSON.parse(groups['data'] ?? ''))] : [],
    );
  }

  async #read(response: Response): Promise<void> {
    try {
      for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) this.text += piece;
    } catch {
      // The client has gone.
    }
    this.isOver = true;
  }
}

async function post(tenant: TestTenant, path: string, body: unknown): Promise<unknown> {
  const answer = await gateway.ask(tenant.admin, path, { method: 'POST', body, headers: { Accept: 'application/json' } });
  expect(answer.status).toBeLessThan(300);
  return answer.json();
}

async function findTurn({ admin }: TestTenant, status: string): Promise<z.infer<typeof Listed>[number]> {
  const list = async (): Promise<z.infer<typeof Listed>> => Listed.parse(await (await gateway.ask(admin, '/api/turns')).json());
  return eventually(async () => (await list()).find((turn) => turn.status === status));
}

describe('the feed of a tenant', () => {
  it('tells of turns, conversations, handoffs and schedules, those of its own tenant alone', async () => {
    const [tenant, other] = await Promise.all([gateway.tenant(), gateway.tenant()]);
    using feed = await Feed.open(tenant.read);
    using others = await Feed.open(other.admin);
    const { contact_id: contactId } = Replied.parse(await post(tenant, '/api/cs', { message: 'hello' }));
    await eventually(() => feed.states().includes('done'));
    const { id: scheduleId } = Made.parse(
      await post(tenant, '/api/cron', { name: 'Report', message: 'Report.', schedule: { every: '1h' } }),
    );
    await eventually(() => feed.ids('schedule').includes(scheduleId));
    await post(tenant, `/api/sessions/${contactId}/handoff`, { reason: 'wants a person' });
    await eventually(() => feed.ids('handoff').length > 0);
    const before = feed.ids('handoff').length;
    await post(tenant, `/api/sessions/${contactId}/resume`, {});
    await eventually(() => feed.ids('handoff').length > before);
    expect(new Set(feed.ids('handoff'))).toEqual(new Set([contactId]));
    await atRest(tenant);
    expect((await gateway.ask(tenant.admin, `/api/sessions/${contactId}`, { method: 'DELETE' })).status).toBe(204);
    await eventually(() => feed.ids('session').includes(contactId));
    expect(feed.againCount()).toBe(1);
    // What is told later was not overtaken: nothing of all this came to the other one.
    await post(other, '/api/cs', { message: 'hello' });
    await eventually(() => others.states().includes('done'));
    expect(others.ids('schedule')).toEqual([]);
    expect(others.ids('turn').filter((id) => feed.ids('turn').includes(id))).toEqual([]);
  });

  it('tells of a turn that waits when it is to be cancelled', async () => {
    using stack = new DisposableStack();
    stack.defer(() => (gateway.script = sayItBack));
    gateway.holdTurns();
    const tenant = await gateway.tenant();
    const chat = { method: 'POST', body: { message: 'hello', sender: 'ann' } };
    const streams = [await gateway.open(tenant.admin, '/api/cs', chat)];
    const running = await findTurn(tenant, 'running');
    streams.push(await gateway.open(tenant.admin, '/api/cs', chat));
    const waiting = await findTurn(tenant, 'waiting');
    using feed = await Feed.open(tenant.admin);
    await post(tenant, `/api/turns/${waiting.id}/cancel`, undefined);
    await eventually(() => feed.ids('turn').includes(waiting.id));
    expect(await findTurn(tenant, 'waiting')).toMatchObject({ id: waiting.id, cancelling: true });
    await post(tenant, `/api/turns/${running.id}/cancel`, undefined);
    for (const stream of streams) await stream.text();
  });

  it('says that everything is to be read again when Redis was away', async () => {
    const tenant = await gateway.tenant();
    using feed = await Feed.open(tenant.admin);
    const redis = gateway.redis.client();
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    redis.disconnect();
    await eventually(() => feed.againCount() > 1);
    await post(tenant, '/api/cs', { message: 'hello' });
    await eventually(() => feed.states().includes('done'));
    expect(feed.isOver).toBe(false);
  });

  it('says that there were too many changes to name, beyond its limit', async () => {
    const tenant = await gateway.tenant();
    using feed = await Feed.open(tenant.admin);
    const redis = gateway.redis.client();
    const changes = Array.from({ length: limits.feedChangesAtOnce + 1 }, (_, index) => ({ kind: 'delivery', id: `m_${String(index)}` }));
    // A slow machine may send them in parts that are below the limit.
    await eventually(async () => {
      await redis.multi(changes.map((change) => ['publish', keyOf.feed(tenant.id), JSON.stringify(change)])).exec();
      return feed.againCount() > 1;
    });
    redis.disconnect();
    expect(feed.isOver).toBe(false);
  });

  it('says that something has changed where it does not understand what', async () => {
    const tenant = await gateway.tenant();
    using feed = await Feed.open(tenant.admin);
    const redis = gateway.redis.client();
    for (const [index, told] of ['not JSON', '{"kind":"of a later version","id":"x"}'].entries()) {
      await redis.publish(keyOf.feed(tenant.id), told);
      await eventually(() => feed.againCount() > index + 1);
    }
    redis.disconnect();
    expect(feed.isOver).toBe(false);
  });

  it('is refused to a key for cs, beyond the limit of a key, and costs none of the requests of an hour', async () => {
    const tenant = await gateway.tenant('preview');
    expect((await gateway.ask(tenant.cs, '/api/feed')).status).toBe(403);
    const feeds = await Promise.all(Array.from({ length: limits.feedsPerKey }, async () => Feed.open(tenant.admin)));
    const refused = await gateway.ask(tenant.admin, '/api/feed');
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    for (const feed of feeds) feed[Symbol.dispose]();
    await eventually(async () => {
      using feed = await Feed.open(tenant.admin).catch(() => undefined);
      return feed !== undefined;
    });
    const counted = await gateway.ask(tenant.admin, '/api/sessions');
    expect(counted.headers.get('ratelimit')).toMatch(new RegExp(`r=${String(limits.previewRequestsPerHour - 1)};`, 'u'));
  });

  it('ends with the service', async () => {
    await using own = await TestGateway.start();
    const before = gateway;
    gateway = own;
    try {
      const tenant = await own.tenant();
      using feed = await Feed.open(tenant.admin);
      await own.stop(500);
      await eventually(() => feed.isOver);
      expect(feed.againCount()).toBe(1);
    } finally {
      gateway = before;
    }
  });
});

describe('the feed of operators', () => {
  const path = '/ops/api/feed';

  it('tells whose turns, handoffs and schedules change, and by the clock that figures do', async () => {
    const [one, other] = await Promise.all([gateway.tenant(), gateway.tenant()]);
    using feed = await Feed.open(undefined, path);
    const { contact_id: contactId } = Replied.parse(await post(one, '/api/cs', { message: 'a secret' }));
    await post(other, '/api/admin', { message: 'hello' });
    await eventually(() => [one.id, other.id].every((id) => feed.tenants('turn').includes(id)));
    await post(one, `/api/sessions/${contactId}/handoff`, { reason: 'wants a person' });
    await eventually(() => feed.tenants('handoff').includes(one.id));
    await eventually(() => feed.text.includes('event: figures\ndata: {}\n\n'));
    expect(feed.againCount()).toBe(1);
    // Whose, and nothing of what: neither conversations nor words.
    expect(feed.text).not.toContain(contactId);
    expect(feed.text).not.toContain('secret');
  });

  it('says that everything is to be read again when Redis was away, or when it does not understand what has changed', async () => {
    const tenant = await gateway.tenant();
    using feed = await Feed.open(undefined, path);
    const redis = gateway.redis.client();
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => feed.againCount() > 1);
    const before = feed.againCount();
    await redis.publish(keyOf.feed(tenant.id), 'not JSON');
    await eventually(() => feed.againCount() > before);
    redis.disconnect();
    expect(feed.isOver).toBe(false);
  });

  it('is refused to the key of a tenant where there is a token, and beyond its limit', async () => {
    await using guarded = await TestGateway.start({ opsToken: 'token-of-operators' });
    const tenant = await guarded.tenant();
    expect((await guarded.ask(tenant.admin, path)).status).toBe(401);
    const stop = new AbortController();
    const headers = { Authorization: 'Bearer token-of-operators' };
    // Held: one that nothing refers to is closed by the collection of garbage.
    const open: Response[] = [];
    while (open.length < limits.feedsPerKey) open.push(await guarded.open(undefined, path, { headers, signal: stop.signal }));
    expect((await guarded.open(undefined, path, { headers, signal: stop.signal })).status).toBe(503);
    expect(new Set(open.map(({ status }) => status))).toEqual(new Set([200]));
    stop.abort();
    await eventually(async () => {
      const again = new AbortController();
      const { status } = await guarded.open(undefined, path, { headers, signal: again.signal });
      again.abort();
      return status === 200;
    });
  });
});
