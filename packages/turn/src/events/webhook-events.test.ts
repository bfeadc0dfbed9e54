import type { DeliveryStep, EventView } from '@concierge/contract';
import { createLog } from '@concierge/runtime';
import { Delivery, type NewOutbound, type TenantScope } from '@concierge/tenant';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { WebhookEvents, emitDeliveries } from './webhook-events.ts';

const log = createLog({ service: 'test', level: 'silent' });
let scope: TenantScope;

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  await scope.events.endpoints.create({ url: 'https://example.com/' });
});

/**
 * Called for each state that the message reaches, and twice for the last one, as by a process that repeats the work of
 * a dead one.
 */
async function tell(facts: Partial<NewOutbound>, ...steps: readonly DeliveryStep[]): Promise<void> {
  const { message } = await scope.outbox.accept({
    kind: 'answer',
    channel: 'channel_a',
    to: '4930123456',
    sessionId: '0'.repeat(32),
    text: 'Hello',
    agent: 'cs',
    turnId: 't_1',
    callId: 'answer',
    ...facts,
  });
  const emit = emitDeliveries(new WebhookEvents({ queue: { add: silently }, log }));
  const states = steps.map((_step, at) => new Delivery(message, steps.slice(0, at + 1)));
  for (const delivery of [...states, ...states.slice(-1)]) await emit(scope, delivery);
}

async function silently(): Promise<void> {
  return Promise.resolve();
}

async function events(): Promise<EventView[]> {
  return (await scope.events.list({ limit: 10 })).items.toSorted((a, b) => a.timestamp.localeCompare(b.timestamp));
}

const at = (second: number): string => `2026-11-21T20:00:0${String(second)}.000Z`;
const parts: DeliveryStep = { kind: 'parts', at: at(0), parts: [{ text: 'Hello', plain: 'Hello' }] };
const attempt = { kind: 'result', part: 0, try: 1 } as const;
const sent: DeliveryStep = { ...attempt, at: at(1), outcome: 'sent', providerMessageId: 'wamid.1' };
const receipt = (second: number, state: 'delivered' | 'read' | 'failed'): DeliveryStep => ({
  kind: 'receipt',
  at: at(second),
  part: 0,
  state,
});

describe('a message that arrives', () => {
  it('is reported once, with the time it arrived, although it is read later', async () => {
    await tell({}, parts, sent, receipt(2, 'delivered'), receipt(3, 'read'));
    expect(await events()).toMatchObject([
      { type: 'message.delivered', timestamp: at(2), data: { channel: 'channel_a', turnId: 't_1', state: 'delivered' } },
    ]);
  });

  it('is not reported while a provider with receipts has only accepted it', async () => {
    await tell({}, parts, sent);
    expect(await events()).toEqual([]);
  });

  it.each(['channel_c', 'channel_d'] as const)('has arrived on %s, which gives no receipts, when it is sent', async (channel) => {
    await tell({ channel }, parts, sent);
    expect(await events()).toMatchObject([{ type: 'message.delivered', timestamp: at(1), data: { channel, state: 'sent' } }]);
  });

  it('names no turn when it has none, such as the notice that staff will answer', async () => {
    await tell({ kind: 'notice', turnId: `h_${'1'.repeat(32)}`, callId: 'notice' }, parts, sent, receipt(2, 'delivered'));
    expect(await events()).toMatchObject([{ data: { turnId: null } }]);
  });
});

describe('a message that does not arrive', () => {
  it('is reported with the provider’s own code', async () => {
    await tell({}, parts, { ...attempt, at: at(1), outcome: 'refused', problem: { code: '131026', message: 'Undeliverable.' } });
    expect(await events()).toMatchObject([
      { type: 'message.failed', timestamp: at(1), data: { state: 'failed', error: { code: '131026', message: 'Undeliverable.' } } },
    ]);
  });

  it.each(['expired', 'withheld'] as const)('because it is %s is reported with our own code', async (state) => {
    await tell({}, { kind: 'end', at: at(1), state, problem: { code: 'handoff', message: 'A person has it.' } });
    expect(await events()).toMatchObject([{ type: 'message.failed', data: { state, error: { code: 'handoff' } } }]);
  });

  it('as far as was known, and then arrives, is reported as both', async () => {
    const unknown = { code: 'interrupted', message: 'It may have arrived.' };
    await tell({}, parts, { ...attempt, at: at(1), outcome: 'unknown', problem: unknown }, { ...sent, at: at(2) }, receipt(3, 'delivered'));
    expect(await events()).toMatchObject([
      { type: 'message.failed', timestamp: at(1), data: { state: 'unknown', error: unknown } },
      { type: 'message.delivered', timestamp: at(3) },
    ]);
  });

  it('after it was sent anew, either, is reported once', async () => {
    const refused: DeliveryStep = { ...attempt, at: at(1), outcome: 'refused', problem: { code: '400', message: 'No.' } };
    const redrive: DeliveryStep = { kind: 'redrive', at: at(2), by: { kind: 'operator' }, expiresAt: '2026-11-22T20:00:00.000Z' };
    await tell({}, parts, refused, redrive, { ...refused, at: at(3), try: 2 });
    expect(await events()).toMatchObject([{ type: 'message.failed', timestamp: at(1) }]);
  });
});
