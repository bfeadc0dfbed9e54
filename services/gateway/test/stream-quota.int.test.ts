import { describe, expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { postTelegram, telegram } from './channels.ts';
import { TestGateway } from './test-gateway.ts';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

describe('a tenant whose turns fill the streams', () => {
  it('is refused before acceptance with the reason, at every endpoint, and no other is', async () => {
    const [loud, quiet] = [await gateway.tenant(), await gateway.tenant()];
    await loud.scope.updateSettings({ limits: { streamCharactersPerHour: 20_000 } });
    const say = async (key: string): Promise<Response> =>
      gateway.ask(key, '/api/cs', { method: 'POST', body: { message: 'x'.repeat(5000) }, headers: { Accept: 'application/json' } });
    const refused = await eventually(async () => {
      const answer = await say(loud.cs);
      return answer.status === 200 ? undefined : answer;
    });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '600']);
    expect(await refused.json()).toMatchObject({ code: 'rate_limited', detail: expect.stringContaining('20000 characters') });
    const body = { model: 'cs', messages: [{ role: 'user', content: 'x' }] };
    expect((await gateway.ask(loud.cs, '/v1/chat/completions', { method: 'POST', body })).status).toBe(429);
    // The file of a turn that has ended is removed after its answer.
    await eventually(async () => (await loud.scope.inbox.turnIds()).length === 0);
    await loud.scope.channels.connect('channel_c', telegram);
    const from = { id: 7, is_bot: false, first_name: 'Ann' };
    const update = { update_id: 1, message: { message_id: 1, date: 1, chat: { id: 7, type: 'private' }, from, text: 'hello' } };
    expect((await postTelegram(gateway, loud.id, update)).status).toBe(503);
    expect(await loud.scope.inbox.turnIds()).toEqual([]);
    expect((await say(quiet.cs)).status).toBe(200);
  });
});
