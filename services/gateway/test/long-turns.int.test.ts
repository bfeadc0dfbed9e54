import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { RawClient } from './raw-client.ts';
import type { Script } from './scripted-turns.ts';
import { parseEvents } from './sse.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let turnId: string;

const RESULTS = 250;
const EVENTS = 2 + 3 * RESULTS;
const output = 'x'.repeat(limits.toolOutputEventMaxBytes);

/** Several times what a client may leave unread. */
const longTurn: Script = async ({ writer }) => {
  for (let call = 1; call <= RESULTS; call += 1) {
    const facts = { id: `c${String(call)}`, name: 'read' };
    writer.emit({ type: 'tool_call_start', data: { ...facts, input: {} } });
    writer.emit({ type: 'tool_call_end', data: { ...facts, durationMs: 1, isError: false } });
    writer.emit({ type: 'tool_result', data: { ...facts, output, isError: false } });
    await writer.flush();
  }
};

setUpOnce(async (stack) => {
  // Longer than a client rests while the machine stands still.
  gateway = stack.use(await TestGateway.start({ unreadAnswerMs: 120_000 }));
  tenant = await gateway.tenant();
  gateway.script = longTurn;
  const live = await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', body: { message: 'work' } });
  const events = parseEvents(await live.text());
  if (events.length !== EVENTS) throw new Error(`a turn of ${String(events.length)} events`);
  turnId = String(events[0]?.data['turnId']);
});

describe('a turn with more events than a client may leave unread', () => {
  it('is read again from its start', async () => {
    const again = await gateway.ask(tenant.admin, `/api/turns/${turnId}/events`);
    const events = parseEvents(await again.text());
    expect(events).toHaveLength(EVENTS);
    expect(events.at(-1)?.type).toBe('done');
  });

  it('is read to its end by a client that rests on the way', async () => {
    using client = await RawClient.open(gateway);
    client.send(`GET /api/turns/${turnId}/events HTTP/1.1`, 'Host: localhost', `X-API-Key: ${tenant.admin}`, '', '');
    await eventually(() => client.seen.length > 0);
    client.socket.pause();
    const others = await gateway.ask(tenant.admin, `/api/turns/${turnId}/events`);
    expect(parseEvents(await others.text())).toHaveLength(EVENTS);
    client.socket.resume();
    await eventually(() => client.seen.includes('event: done'));
    expect(client.seen.split('event: tool_result\n')).toHaveLength(RESULTS + 1);
  });
});
