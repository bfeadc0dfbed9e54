import { AuditEntry, routes } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const opsToken = 'operators-token-of-this-test';
const { listStuckDeliveries, redriveDeliveries } = routes;
const at = '2026-11-20T12:00:00.000Z';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ opsToken }));
});

async function operate(path: string, method = 'GET', body?: object): Promise<Response> {
  return gateway.ask(undefined, path, { method, body, headers: { Authorization: `Bearer ${opsToken}` } });
}

async function list(query: string): Promise<z.infer<(typeof listStuckDeliveries.answers)[200]['json']>> {
  return listStuckDeliveries.answers[200].json.parse(await (await operate(`${listStuckDeliveries.path}?${query}`)).json());
}

async function redrive(body: object): Promise<z.infer<(typeof redriveDeliveries.answers)[200]['json']>> {
  const response = await operate(redriveDeliveries.path, 'POST', body);
  expect(response.status).toBe(200);
  return redriveDeliveries.answers[200].json.parse(await response.json());
}

/** Two messages that were refused, one that must not be sent, one that waits, and a dead event. */
async function fill({ scope: { outbox, events } }: TestTenant): Promise<{ failed: string[]; withheld: string; event: string }> {
  const outbound = { kind: 'message', channel: 'channel_c', sessionId: '0'.repeat(32), text: 'Hi', agent: 'cs', turnId: 't_1' } as const;
  const end = async (callId: string, state: 'failed' | 'withheld'): Promise<string> => {
    const { id } = (await outbox.accept({ ...outbound, to: callId, callId })).message;
    const delivery = await outbox.record(id, [{ kind: 'end', at, state, problem: { code: '403', message: 'blocked' } }]);
    if (delivery !== undefined) await outbox.end(delivery);
    return id;
  };
  const failed = [await end('1', 'failed'), await end('2', 'failed')];
  const withheld = await end('3', 'withheld');
  await outbox.accept({ ...outbound, to: '4', callId: '4' });
  await events.endpoints.create({ url: 'https://example.com/', types: ['turn.failed'] });
  const data = { turnId: 't_1', contact_id: '0'.repeat(32), agent: 'cs', channel: 'web', origin: 'api', acceptedAt: at } as const;
  const failure = { ...data, usage: { inputTokens: 0, outputTokens: 0 }, error: { code: 'turn_timeout' } } as const;
  const [kept] = await events.emit({ type: 'turn.failed', key: 't_1', at, data: failure });
  const event = kept?.id ?? '';
  const record = await events.files.waiting(event);
  if (record !== undefined) await events.files.settle({ ...record, outcome: 'dead', reason: 'it answered 410' });
  return { failed, withheld, event };
}

describe('what has not arrived', () => {
  it('is listed by tenant and channel, with the last dead letter and why it is one', async () => {
    const tenant = await gateway.tenant();
    const { withheld, event } = await fill(tenant);
    expect(await list(`tenant=${tenant.id}`)).toMatchObject([
      { channel: 'channel_c', waiting: 1, retrying: 0, dead: 3, isWhole: true, lastDead: { id: withheld, problem: '403' } },
      { channel: 'events', waiting: 0, retrying: 0, dead: 1, oldestWaitingAt: null, lastDead: { id: event, problem: 'it answered 410' } },
    ]);
    const pages: string[] = [];
    for (let next: string | undefined = `${listStuckDeliveries.path}?limit=1`; next !== undefined;) {
      const response: Response = await operate(next);
      const found = listStuckDeliveries.answers[200].json.parse(await response.json());
      pages.push(...found.map(({ tenantId }) => tenantId));
      next = /<([^>]+)>/u.exec(response.headers.get('link') ?? '')?.[1];
    }
    expect(pages.filter((id) => id === tenant.id)).toHaveLength(2);
    expect((await operate(`${listStuckDeliveries.path}?tenant=nobody`)).status).toBe(404);
  });

  it('is sent again a few at a time after a dry run, but for what must not be sent', async () => {
    const tenant = await gateway.tenant();
    const { failed, withheld, event } = await fill(tenant);
    expect(await redrive({ tenant: tenant.id })).toEqual({
      dryRun: true,
      deliveries: 3,
      tenants: [{ tenantId: tenant.id, deliveries: 3 }],
      redriven: [],
      skipped: [{ reason: 'withheld', deliveries: 1 }],
      nextCursor: null,
    });
    expect(await redrive({ tenant: tenant.id, channel: 'events' })).toMatchObject({ deliveries: 1 });
    expect(await redrive({ tenant: tenant.id, channel: 'telegram' })).toMatchObject({ deliveries: 2 });

    const taken: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const step = await redrive({ tenant: tenant.id, dryRun: false, limit: 1, cursor });
      expect(step.redriven.length).toBeLessThanOrEqual(1);
      taken.push(...step.redriven.map(({ id }) => id));
      cursor = step.nextCursor;
    }
    expect(taken.toSorted()).toEqual([...failed, event].toSorted());
    expect(await redrive({ tenant: tenant.id, dryRun: false })).toMatchObject({ deliveries: 0 });
    for (const id of failed) expect((await tenant.scope.outbox.delivery(id))?.state).toBe('waiting');
    expect((await tenant.scope.outbox.delivery(withheld))?.state).toBe('withheld');
    expect(await tenant.scope.events.get(event)).toMatchObject({ status: 'waiting', tries: 0 });
    const audit = z.array(AuditEntry).parse(await (await operate(`/ops/api/audit?tenant=${tenant.id}`)).json());
    expect(audit.map(({ act }) => act).toSorted()).toEqual(['delivery.redrive', 'delivery.redrive', 'event.redrive']);
    expect((await operate(`${redriveDeliveries.path}`, 'POST', { cursor: '..' })).status).toBe(400);
  });

  it('is sent again one by one, what must not be sent in bulk included', async () => {
    const tenant = await gateway.tenant();
    const { withheld, event } = await fill(tenant);
    const one = async (id: string): Promise<number> =>
      (await operate(`/ops/api/deliveries/${id}/redrive?tenant=${tenant.id}`, 'POST')).status;
    expect([await one(withheld), await one(withheld), await one(event), await one('m_0')]).toEqual([202, 409, 202, 404]);
    expect((await operate(`/ops/api/deliveries/${event}/redrive`, 'POST')).status).toBe(400);
  });
});
