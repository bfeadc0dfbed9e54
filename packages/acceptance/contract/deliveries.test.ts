import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { DeliveryView, TurnView } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise } from './fixture.ts';

let contract: ContractSystem;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start());
});

function readNext(headers: Headers): string {
  return /<(?<path>[^>]+)>/u.exec(headers.get('link') ?? '')?.groups?.['path'] ?? '';
}

describe('deliveries', () => {
  const outbound = {
    kind: 'message',
    channel: 'channel_c',
    sessionId: '0123456789abcdef0123456789abcdef',
    text: 'Your parcel is here.',
    agent: 'admin',
  } as const;

  promise(['C/4/15'], 'are listed and shown with what became of them, and sent again on request', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('admin');
    const { turnId } = z.object({ turnId: z.string() }).parse((await client.ask('admin', { message: 'hello' })).json());
    const { outbox } = await contract.system.scope(tenant.tenantId);
    const kept: string[] = [];
    for (const to of ['1', '2', '3']) kept.push((await outbox.accept({ ...outbound, to, turnId, callId: to })).message.id);
    const [withheld = '', ...waiting] = kept;
    const problem = { code: 'handoff', message: 'A person has the conversation.' };
    await outbox.record(withheld, [{ kind: 'end', at: new Date().toISOString(), state: 'withheld', problem }]);
    await eventually(async () => {
      const delivery = await outbox.delivery(withheld);
      if (delivery !== undefined) await outbox.end(delivery);
      return (await outbox.dead()).length === 1;
    });

    const list = async (query: string): Promise<string[]> =>
      z
        .array(DeliveryView)
        .parse((await tenant.as('read').get(`/api/deliveries${query}`)).json())
        .map(({ id }) => id);
    expect(await list('')).toEqual(kept.toReversed());
    expect(await list('?status=withheld')).toEqual([withheld]);
    expect(await list('?status=waiting')).toEqual(waiting.toReversed());
    const first = await client.get('/api/deliveries?limit=2');
    expect(await list(readNext(first.headers).replace('/api/deliveries', ''))).toEqual([withheld]);
    expect((await client.get('/api/deliveries?status=odd')).status).toBe(400);
    expect((await client.get('/api/deliveries?cursor=odd')).status).toBe(400);
    expect(DeliveryView.parse((await client.get(`/api/deliveries/${withheld}`)).json())).toMatchObject({
      state: 'withheld',
      problem,
      parts: [],
    });
    expect((await client.get('/api/deliveries/m_0')).status).toBe(404);
    expect(TurnView.parse((await client.get(`/api/turns/${turnId}`)).json()).deliveries?.map(({ id }) => id)).toEqual(kept);

    const redrive = async (id: string) => client.request(`/api/deliveries/${id}/redrive`, { method: 'POST' });
    const again = await redrive(withheld);
    expect(again.status).toBe(202);
    expect(again.json()).toMatchObject({ id: withheld, state: 'waiting', problem: null });
    expect((await redrive(withheld)).problem().code).toBe('conflict');
    expect((await redrive('m_0')).status).toBe(404);
  });
});
