import { randomBytes } from 'node:crypto';
import { toAppName, type AcceptedTurn, type MessagingChannel } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { describe, expect, it } from '@jest/globals';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestGateway } from './test-gateway.ts';
import {
  buildBody,
  findChannel,
  findFixture,
  fixtures,
  sequences,
  findSettings,
  type ExpectedMessage,
  type Fixture,
} from './webhook-fixtures.ts';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  // Accepted turns stay where they can be looked at.
  gateway.holdTurns();
});

async function connected(fixture: Fixture): Promise<TenantScope> {
  const scope = await gateway.tenants.create(`t${randomBytes(6).toString('hex')}`);
  const settings = findSettings(fixture);
  if (settings !== undefined) await scope.channels.connect(findChannel(fixture), settings);
  return scope;
}

async function post(fixture: Fixture, tenantId: string, spelling: string): Promise<Response> {
  const { clock_unix: clock, headers } = fixture;
  gateway.clock.now = () => (clock ?? 1_760_000_000) * 1000;
  return gateway.ask(undefined, `/webhook/${spelling}/${tenantId}`, { method: 'POST', headers, body: Buffer.from(buildBody(fixture)) });
}

async function acceptedBy(scope: TenantScope): Promise<AcceptedTurn[]> {
  const turns = await Promise.all((await scope.inbox.turnIds()).map(async (turnId) => scope.inbox.read(turnId)));
  return turns.filter((turn) => turn !== undefined).toSorted((one, other) => one.acceptedAtMs - other.acceptedAtMs);
}

/** The turn in the words of the fixtures. */
function toExpected({ sender, text, channelMessage, ...turn }: AcceptedTurn, expected: ExpectedMessage): object {
  return {
    origin: turn.origin,
    agent: turn.agent,
    authority: turn.authority,
    channel: turn.channel,
    sender,
    text,
    media: channelMessage?.media.length,
    address: channelMessage?.address,
    isGroup: channelMessage?.isGroup,
    replyTo: channelMessage?.replyTo,
    ...(expected.message_ref !== undefined && { messageRef: channelMessage?.messageRef }),
  };
}

function wanted(expected: ExpectedMessage, channel: MessagingChannel): object {
  const { conversation_id: conversation, thread_id: thread = null, is_group: isGroup, sender_id: person } = expected;
  // The fixtures name a page and one of its senders; an answer is addressed to the sender, in the limits of the account
  // beside them.
  const to = channel === 'channel_b' ? person : conversation;
  const account = channel === 'channel_b' ? { account: conversation.split(':')[0] } : {};
  return {
    origin: 'webhook',
    agent: 'cs',
    authority: 'cs',
    channel,
    sender: isGroup ? `${to}:${person}` : person,
    text: expected.text_plain ?? expected.text ?? '',
    media: expected.attachments.length,
    address: { to, thread, ...account },
    isGroup,
    replyTo: expected.reply_to,
    ...(expected.message_ref !== undefined && { messageRef: expected.message_ref }),
  };
}

/** Sorted: messages that different senders wrote at once have no order. */
function sorted(items: readonly object[]): string[] {
  return items.map((item) => JSON.stringify(item)).toSorted();
}

const named = (some: readonly Fixture[]): [string, Fixture][] => some.map((fixture) => [fixture.id, fixture]);
const posts = fixtures.filter(({ method }) => method === 'POST');
const taken = posts.filter(({ expected }) => ['inbound', 'mixed', 'ignore'].includes(expected.outcome));
// Only a service that has seen the first delivery ignores the second: see the sequences.
const isDuplicate = ({ id }: Fixture): boolean => id.includes('seq_duplicate');

const signedNonsense = posts.filter(({ expected }) => ['bad_request', 'signature_only'].includes(expected.outcome));

describe('a delivery of a channel', () => {
  it.each(named(taken.filter((fixture) => !isDuplicate(fixture))))('is taken once and for all: %s', async (_id, fixture) => {
    const scope = await connected(fixture);
    const channel = findChannel(fixture);
    expect((await post(fixture, scope.tenantId, channel)).status).toBe(200);
    const turns = await acceptedBy(scope);
    const { messages, messages_count: count = messages.length } = fixture.expected;
    expect(turns).toHaveLength(count);
    const [first] = messages;
    const all = first === undefined ? [] : sorted(turns.map((turn) => toExpected(turn, first)));
    const expected = sorted(messages.map((message) => wanted(message, channel)));
    // A fixture of a thousand messages names the first and the last.
    expect(count === messages.length ? all : all.filter((one) => expected.includes(one))).toEqual(expected);
    // A channel that revokes our access is not read any more.
    const isRevoked = (await scope.channels.find(channel))?.state === 'disabled';
    const again = await post(fixture, scope.tenantId, toAppName(channel));
    expect(again.status).toBe(isRevoked ? 401 : 200);
    expect(await again.text()).toMatch(isRevoked ? /invalid_signature/u : /^$/u);
    expect(await acceptedBy(scope)).toHaveLength(count);
  });

  it.each(named(posts.filter(({ expected }) => expected.outcome === 'reject')))(
    'is refused without its signature: %s',
    async (_id, fixture) => {
      const scope = await connected(fixture);
      expect((await post(fixture, scope.tenantId, findChannel(fixture))).status).toBe(401);
      expect(await acceptedBy(scope)).toEqual([]);
    },
  );

  it.each(named(signedNonsense))('is malformed when it is signed and not in the format of the provider: %s', async (_id, fixture) => {
    const scope = await connected(fixture);
    expect((await post(fixture, scope.tenantId, findChannel(fixture))).status).toBe(400);
  });

  it.each(sequences)(
    'is known after those before it: $name',
    async ({ steps, expected_total_inbound: total, expected_side_effects: effects }) => {
      const all = steps.map((id) => findFixture(id));
      const [first] = all;
      if (first === undefined) throw new Error('a sequence has steps');
      const scope = await connected(first);
      for (const fixture of all) expect((await post(fixture, scope.tenantId, findChannel(fixture))).status).toBe(200);
      const accepted = await acceptedBy(scope);
      const heard = accepted.filter(({ origin }) => origin === 'webhook');
      expect(heard).toHaveLength(total);
      const takenBack = accepted.filter(({ origin }) => origin === 'retraction').map(({ retracts }) => retracts);
      const redacted = effects.map(({ redact }) => heard.find(({ channelMessage }) => channelMessage?.messageRef === redact)?.turnId);
      expect(takenBack).toEqual(redacted);
    },
  );
});

describe('a handshake', () => {
  it.each(named(fixtures.filter(({ method }) => method === 'GET')))('by GET: %s', async (_id, fixture) => {
    const scope = await connected(fixture);
    const query = new URLSearchParams(
      Object.entries(fixture.query ?? {}).flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, String(one)])),
    );
    const tenantId = fixture.binding === null ? 'nobody' : scope.tenantId;
    const answer = await gateway.ask(undefined, `/webhook/${findChannel(fixture)}/${tenantId}?${query.toString()}`);
    const challenge = fixture.expected.response_body;
    // Whatever else is wrong with it, the contract has one answer for it.
    expect(answer.status).toBe(challenge === undefined ? 401 : 200);
    expect(answer.headers.get('content-type')).toBe(challenge === undefined ? 'application/problem+json' : 'text/plain; charset=utf-8');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await answer.text()).toContain(challenge ?? 'invalid_signature');
  });

  it.each(named(posts.filter(({ expected }) => expected.outcome === 'handshake')))('by POST: %s', async (_id, fixture) => {
    const scope = await connected(fixture);
    const answer = await post(fixture, scope.tenantId, findChannel(fixture));
    expect([answer.status, await answer.text()]).toEqual([200, fixture.expected.response_body]);
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  });
});
