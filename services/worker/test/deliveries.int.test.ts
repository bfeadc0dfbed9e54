import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { armFailpoints } from '@concierge/runtime';
import { botError } from '@concierge/testing';
import { DeliveryStage } from './delivery-stage.ts';

let stage: DeliveryStage;

beforeEach(async () => {
  stage = await DeliveryStage.open();
});
afterEach(async () => stage[Symbol.asyncDispose]());

const texts = (): unknown[] => stage.telegram.sent.map(({ text }) => text);

describe('a message to a chat app', () => {
  it('is sent in its app’s signs, and settled', async () => {
    const id = await stage.say('**Hello** Ann');
    expect(await stage.deliver(id)).toEqual({ kind: 'empty' });
    expect(stage.telegram.sent).toMatchObject([{ chat_id: 4242, text: '<b>Hello</b> Ann', parse_mode: 'HTML' }]);
    expect((await stage.delivery(id)).fullView()).toMatchObject({ state: 'sent', problem: null, parts: [{ state: 'sent', tries: 1 }] });
    expect(await stage.scope.outbox.waiting()).toEqual([]);
    expect(await stage.scope.outbox.lanes()).toEqual([]);
    expect((await stage.scope.channels.find('channel_c'))?.lastOutboundAt).toBe(new Date(stage.nowMs).toISOString());
    expect(stage.told).toEqual(['sent']);
  });

  it('goes out part by part, in order', async () => {
    const id = await stage.say(Array.from({ length: 900 }, (_, line) => `line ${String(line)}`).join('\n\n'));
    await stage.deliver(id);
    const numbers = texts().flatMap((text) =>
      [...String(text).matchAll(/line (?<number>\d+)/gu)].map(({ groups }) => Number(groups?.['number'])),
    );
    expect(texts().length).toBeGreaterThan(1);
    expect(numbers).toEqual(Array.from({ length: 900 }, (_, line) => line));
  });

  it('is not begun again when whoever tried it died before or after the app had it', async () => {
    for (const point of ['delivery.after-claim', 'delivery.after-send']) {
      armFailpoints(`${point}:throw`);
      const id = await stage.say(`at ${point}`);
      await expect(stage.deliver(id)).rejects.toThrow('fail point');
      await stage.deliver(id);
      expect((await stage.delivery(id)).view()).toMatchObject({ state: 'unknown', problem: { code: 'interrupted' } });
    }
    expect(texts()).toEqual(['at delivery.after-send']);
    expect(stage.told).toEqual(['unknown', 'unknown']);
  });

  it('waits as the app says, and is then sent once', async () => {
    stage.telegram.failSends(botError(429, 'Too Many Requests: retry after 20', { retry_after: 20 }));
    const id = await stage.say('Hello');
    expect(await stage.deliver(id)).toEqual({ kind: 'parked', untilMs: stage.nowMs + 20_000 });
    expect(stage.held).toEqual([{ channel: 'channel_c', ms: 20_000 }]);
    stage.nowMs += 20_000;
    expect(await stage.deliver(id)).toEqual({ kind: 'empty' });
    expect(texts()).toEqual(['Hello', 'Hello']);
    expect((await stage.delivery(id)).state).toBe('sent');
  });
});
