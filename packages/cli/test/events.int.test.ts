import { EventEndpointView, EventEndpointWithSecret, EventView } from '@concierge/contract';
import { WebhookReceiver } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;
let receiver: WebhookReceiver;

beforeEach(async () => {
  receiver = await WebhookReceiver.start();
  concierge = await CommandLine.over({ OUTBOUND_ALLOW: receiver.place });
  await concierge.json('tenant', 'create', 'acme');
});
afterEach(async () => {
  for (const open of [concierge, receiver]) await open[Symbol.asyncDispose]();
});

async function add(...options: string[]): Promise<EventEndpointWithSecret> {
  return EventEndpointWithSecret.parse(await concierge.json('event-endpoint', 'add', 'acme', receiver.url(), ...options));
}

describe('concierge event-endpoint', () => {
  it('adds, lists, tests, gives a new secret and removes', async () => {
    const { id, secret } = await add('--type', 'turn.failed', '--type', 'schedule.missed', '--include-text', '--description', 'CRM');
    const [listed] = z.array(EventEndpointView).parse(await concierge.json('event-endpoint', 'list', 'acme'));
    expect(listed).toMatchObject({ id, types: ['turn.failed', 'schedule.missed'], includeText: true, description: 'CRM' });
    expect((await concierge.run('event-endpoint', 'list', 'acme')).out).toMatch(
      new RegExp(`^${id} .*turn.failed,schedule.missed +enabled$`, 'mu'),
    );
    expect(await concierge.json('event-endpoint', 'test', 'acme', id)).toMatchObject({ ok: true, status: 204 });
    expect(receiver.received).toHaveLength(1);
    const rotated = EventEndpointWithSecret.parse(await concierge.json('event-endpoint', 'rotate', 'acme', id));
    expect(rotated.secret).not.toBe(secret);
    expect(await concierge.json('event-endpoint', 'remove', 'acme', id)).toEqual({ id, removed: true });
    expect((await concierge.run('event-endpoint', 'remove', 'acme', id)).code).toBe(1);
  });

  it('shows by its exit code that a test was not taken, and refuses private addresses and unknown types', async () => {
    receiver.answer = () => ({ status: 500 });
    const { id } = await add();
    const failed = await concierge.run('event-endpoint', 'test', 'acme', id);
    expect([failed.code, failed.out]).toEqual([1, 'It answered 500.\n']);
    const refused = await concierge.runWith({ OUTBOUND_ALLOW: '' }, 'event-endpoint', 'test', 'acme', id);
    expect(refused.out).toContain('has no public address');
    const unknown = await concierge.run('event-endpoint', 'add', 'acme', receiver.url(), '--type', 'turn.began');
    expect(unknown.err).toContain('turn.began is no type of event: turn.completed');
    expect((await concierge.run('event-endpoint', 'add', 'acme', 'nonsense')).err).toContain('The endpoint is not valid');
  });
});

describe('concierge event', () => {
  it('lists what was given up, and has one or all of an endpoint sent anew', async () => {
    const { id: endpoint } = await add();
    await concierge.withScope('acme', async ({ events }) => {
      for (const runId of ['a', 'b', 'c']) {
        const at = '2026-11-21T20:00:00.000Z';
        const data = { scheduleId: 's', name: 'Report', runId, scheduledAt: at, missedSince: null, reason: null };
        const [kept] = await events.emit({ type: 'schedule.missed', key: runId, at, data });
        const event = await events.files.waiting(kept?.id ?? '');
        if (event === undefined) throw new Error('does not wait');
        await events.files.settle({ ...event, outcome: 'dead', reason: 'Every try has failed.' });
      }
    });
    const dead = z.array(EventView).parse(await concierge.json('event', 'list', 'acme', '--status', 'dead', '--endpoint', endpoint));
    expect(dead.map(({ data }) => data['runId']).toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual(['a', 'b', 'c']);
    expect((await concierge.run('event', 'list', 'acme')).out).toContain('Every try has failed.');
    expect(await concierge.json('event', 'redrive', 'acme', dead[0]?.id ?? '')).toEqual({ redriven: 1, more: false });
    expect(await concierge.json('event', 'redrive', 'acme', endpoint, '--since', '2026-11-21')).toEqual({ redriven: 2, more: false });
    expect(z.array(EventView).parse(await concierge.json('event', 'list', 'acme', '--status', 'waiting'))).toHaveLength(3);
    expect((await concierge.run('event', 'redrive', 'acme', dead[0]?.id ?? '')).err).toContain('Only a dead letter');
  });
});
