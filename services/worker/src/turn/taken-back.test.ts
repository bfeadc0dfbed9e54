import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { AcceptedTurn, ChannelMessage, Session } from '@concierge/contract';
import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { emitTurnEnd } from './publish-turn.ts';
import { TurnMetrics } from '../metrics.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
const channelMessage: ChannelMessage = { address: { to: '9', thread: null }, isGroup: false, messageRef: 'm', media: [], replyTo: null };
const secret = 'my card number is 4111 1111';

let scope: TenantScope;
let emitted: string[];

setUpOnce(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  // Without an endpoint nothing is emitted.
  await scope.events.endpoints.create({ url: 'https://example.com/' });
});

async function accept(sessionId: string, text: string, facts: Partial<AcceptedTurn> = {}): Promise<AcceptedTurn> {
  const turn: AcceptedTurn = {
    version: 1,
    turnId: `t_${randomBytes(16).toString('hex')}`,
    tenantId: 'acme',
    sessionId,
    acceptedAtMs: Date.now(),
    origin: 'webhook',
    agent: 'cs',
    authority: 'cs',
    channel: 'channel_b',
    sender: '9',
    text,
    attachments: [],
    requestHash: 'h',
    keyId: null,
    collects: true,
    channelMessage,
    ...facts,
  };
  await scope.inbox.accept(turn, { isUnique: true });
  return turn;
}

/** Runs the first, with the others waiting behind it. */
async function run([head, ...others]: readonly AcceptedTurn[], script = new Script(say('Thank you.'))): Promise<Script> {
  emitted = [];
  const emit = async (_scope: unknown, { type }: { type: string }) => Promise.resolve(void emitted.push(type));
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  const runner = new TurnRunner({
    models: { forRef: () => script },
    capabilityFactories: unconnected,
    followUps: [emitTurnEnd({ emit })],
    metrics,
    log,
  });
  const waitingBehind = async () => Promise.resolve(others.map(({ turnId }) => turnId));
  await runner.runTurn(turnRun(scope, { waitingBehind }, head));
  for (const turn of [head, ...others]) if (turn !== undefined) await scope.inbox.remove(turn.turnId);
  return script;
}

async function takeBack(turn: AcceptedTurn): Promise<Session> {
  const { channelMessage: _channelMessage, collects: _collects, ...facts } = turn;
  const turnId = `t_${randomBytes(16).toString('hex')}`;
  await run([await accept(turn.sessionId, '', { ...facts, turnId, text: '', origin: 'retraction', retracts: turn.turnId })], new Script());
  const session = await scope.sessions.load(turn.sessionId);
  if (session === undefined) throw new Error('There is no session.');
  return session;
}

/** All that is kept of the tenant's conversations. */
async function onDisk(): Promise<string> {
  const root = join(scope.root, 'sessions');
  const names = await readdir(root, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map(async (entry) => readFile(join(entry.parentPath, entry.name), 'utf8'));
  return (await Promise.all(files)).join('\n');
}

const newSessionId = (): string => randomBytes(16).toString('hex');

describe('a message that its sender took back', () => {
  it('is gone from transcript, title, prompt, memory and disk; what was answered stays', async () => {
    const sessionId = newSessionId();
    const upload = await scope.uploads.save({ name: 'card.txt', type: 'text/plain', bytes: Buffer.from(secret), text: secret });
    const turn = await accept(sessionId, secret, { attachments: [upload] });
    await run([turn]);
    const session = await takeBack(turn);
    expect(session.messages).toMatchObject([
      { role: 'user', text: '[The sender took this message back.]' },
      { role: 'assistant', text: 'Thank you.' },
    ]);
    expect(session.messages[0]).not.toHaveProperty('attachments');
    expect(session).toMatchObject({ title: 'Conversation', messageCount: 2 });
    expect(session.turns).toMatchObject([
      { id: turn.turnId, status: 'done' },
      { origin: 'retraction', status: 'done' },
    ]);
    expect(await onDisk()).not.toContain('4111 1111');
    expect(await scope.uploads.find(upload.id)).toBeUndefined();
    const { hits } = await scope.memorySearch.search(
      { access: 'owner' },
      { text: 'card number 4111', limit: 5, signal: new AbortController().signal },
    );
    expect(JSON.stringify(hits)).not.toContain('4111 1111');
    const next = await run([await accept(sessionId, 'and now?')]);
    expect(JSON.stringify(next.requests[0]?.messages)).not.toContain('4111 1111');
    expect(emitted).toEqual(['turn.completed']);
  });

  it('notifies no system of a turn that ended: nothing was asked', async () => {
    const turn = await accept(newSessionId(), secret);
    await run([turn]);
    await takeBack(turn);
    expect(emitted).toEqual([]);
  });

  it('leaves alone what it was answered together with', async () => {
    const sessionId = newSessionId();
    const turns = [await accept(sessionId, 'hello'), await accept(sessionId, secret), await accept(sessionId, 'I need a table')];
    await run(turns);
    const [, second] = turns;
    if (second === undefined) throw new Error('There is no second.');
    const { messages } = await takeBack(second);
    expect(messages[0]).toMatchObject({ text: 'hello\n\n[The sender took this message back.]\n\nI need a table' });
    expect(await onDisk()).not.toContain('4111 1111');
    const again = await takeBack(second);
    expect(again.messages[0]).toEqual(messages[0]);
  });

  it('is gone from what compaction has put away, and from the summary that quotes it', async () => {
    const turn = await accept(newSessionId(), secret);
    await run([turn]);
    const session = await scope.sessions.load(turn.sessionId);
    if (session === undefined) throw new Error('There is no session.');
    await scope.sessions.appendHistory(
      session.id,
      session.messages.map((message) => ({ kind: 'message', message })),
    );
    const summary = { text: `They said: ${secret}.`, messages: 2, updatedAt: session.updatedAt };
    await scope.sessions.publish({ ...session, messages: [], summary, revision: session.revision + 1 });
    const after = await takeBack(turn);
    expect(after.summary?.text).toBe('They said: [The sender took this message back.].');
    expect((await scope.sessions.view(session.id))?.messages[0]).toMatchObject({ text: '[The sender took this message back.]' });
    expect(await onDisk()).not.toContain('4111 1111');
  });

  it('changes nothing where there is none', async () => {
    const turn = await accept(newSessionId(), 'hello');
    await run([turn]);
    const before = await scope.sessions.load(turn.sessionId);
    const after = await takeBack({ ...turn, turnId: 't_unknown' });
    expect(after.messages).toEqual(before?.messages);
  });
});
