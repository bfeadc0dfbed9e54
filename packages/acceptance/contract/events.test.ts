import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { EventEndpointWithSecret, EventView, ScheduleRunView, ScheduleView } from '@concierge/contract';
import { eventually, WebhookReceiver } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { Webhook } from 'standardwebhooks';
import { ContractSystem, type Tenant } from './fixture.ts';

let receiver: WebhookReceiver;
let contract: ContractSystem;
let tenant: Tenant;

setUpEach(async (stack) => {
  receiver = stack.use(await WebhookReceiver.start());
  contract = stack.use(await ContractSystem.start({ crons: 2, env: { OUTBOUND_ALLOW: receiver.place } }));
  tenant = await contract.tenant();
});

async function endpoint(body: object): Promise<EventEndpointWithSecret> {
  const answer = await tenant.as('admin').request('/api/event-endpoints', { body });
  return EventEndpointWithSecret.parse(answer.json());
}

async function events(): Promise<EventView[]> {
  return z.array(EventView).parse((await tenant.as('read').get('/api/events')).json());
}

const HOUR_MS = 3_600_000;
const SOON_MS = 5000;

/** Has a schedule fire soon. A machine that stands still for so long is asked again: a time that is past is refused. */
async function fireSoon(id: string): Promise<string> {
  return await eventually(async () => {
    const at = new Date(Date.now() + SOON_MS).toISOString();
    const answer = await tenant.as('admin').request(`/api/cron/${id}`, { method: 'PATCH', body: { schedule: { at } } });
    return answer.status === 200 ? at : undefined;
  });
}

describe('a tenant’s own system', () => {
  it('is notified of each turn once, by a signed webhook, when its worker is killed in between, too', async () => {
    const { secret } = await endpoint({ url: receiver.url(), includeText: true });
    const [worker] = contract.system.workers;
    await worker?.kill();
    worker?.start({ FAILPOINT: 'events.after-file:kill' });
    const asked = tenant
      .as('cs')
      .request('/api/cs', { body: { message: '[[say:We are open.]]', sender: 'ann' }, headers: { Accept: 'application/json' } });
    await eventually(() => worker?.endedBy === 'SIGKILL');
    worker?.start();
    expect((await asked).json()).toMatchObject({ reply: 'We are open.' });
    const [webhook] = await receiver.until(1);
    expect(new Webhook(secret).verify(webhook?.body ?? '', { ...webhook?.headers })).toMatchObject({
      type: 'turn.completed',
      data: { tenant: tenant.tenantId, agent: 'cs', finishReason: 'stop', text: 'We are open.' },
    });
    const event = await eventually(async () => (await events()).find(({ status }) => status === 'sent'));
    expect(event.id).toBe(webhook?.headers['webhook-id']);
    // Only what had no answer in time is tried again, as where this process, which receives it, stood still.
    expect(event.log.filter(({ status }) => status !== null)).toHaveLength(1);
    expect(receiver.received.length).toBeLessThanOrEqual(event.tries);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([event.id]));
    expect(await events()).toHaveLength(1);
  });

  it('gets the reply of a schedule that delivers to it, and the run records it', async () => {
    const client = tenant.as('admin');
    // Not due before its endpoint has the secret that is known here.
    const schedule = { at: new Date(Date.now() + HOUR_MS).toISOString() };
    const deliver = { webhook: receiver.url('/report') };
    const made = ScheduleView.parse(
      (await client.request('/api/cron', { body: { name: 'Report', message: '[[say:All is well.]]', schedule, deliver } })).json(),
    );
    const [listed] = z.array(z.object({ id: z.string(), url: z.string() })).parse((await client.get('/api/event-endpoints')).json());
    expect(listed?.url).toBe(deliver.webhook);
    const { secret } = EventEndpointWithSecret.parse(
      (await client.request(`/api/event-endpoints/${listed?.id ?? ''}/rotate-secret`, { method: 'POST' })).json(),
    );
    const scheduledAt = await fireSoon(made.id);
    const [webhook] = await receiver.until(1);
    expect(new Webhook(secret).verify(webhook?.body ?? '', { ...webhook?.headers })).toMatchObject({
      type: 'schedule.completed',
      data: { scheduleId: made.id, name: 'Report', scheduledAt, text: 'All is well.' },
    });
    const [run] = await eventually(async () => {
      const runs = z.array(ScheduleRunView).parse((await client.get(`/api/cron/${made.id}/runs`)).json());
      return runs[0]?.delivery?.status === 'sent' ? runs : undefined;
    });
    expect(run?.delivery).toMatchObject({ status: 'sent', eventId: webhook?.headers['webhook-id'], reason: null });
  });
});
