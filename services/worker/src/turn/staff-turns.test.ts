import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { AcceptedTurn, Session, TurnInput } from '@concierge/contract';
import { createLog, newMetrics } from '@concierge/runtime';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { HandoffNotifications, HandoffRequests, type TurnReceipt, type TurnRun } from '@concierge/turn';
import type { WorkerChannels } from '../channels/channels.ts';
import { call, say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { HandoffCommands } from './handoff-commands.ts';
import { deliverStaffMessage } from './publish-turn.ts';
import { TurnMetrics } from '../metrics.ts';
import type { ChosenModel } from './prepare-turn.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
const operator = { kind: 'operator' } as const;
const anna = { kind: 'key', keyId: 'anna' } as const;
const channelMessage = {
  address: { to: '4242', thread: null },
  isGroup: false,
  messageRef: '77',
  media: [],
  replyTo: null,
};
const bob = {
  agent: 'cs',
  authority: 'cs',
  sender: '4242',
  channel: 'channel_c',
  origin: 'webhook',
  channelMessage,
  keyId: null,
  sessionId: deriveSessionId('cs', 'channel_c', '4242'),
} as const;
const owner = { ...bob, sender: '9001', channelMessage: { ...channelMessage, address: { to: '9001', thread: null } } };
const ownerTurn = { ...owner, sessionId: deriveSessionId('cs', 'channel_c', '9001') };

let scope: TenantScope;
/** What was handed in, in place of a queue. */
let accepted: TurnInput[];
let desk: HandoffRequests;

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  accepted = [];
  const turns = {
    accept: async (_scope: TenantScope, input: TurnInput): Promise<TurnReceipt> => {
      accepted.push(input);
      return Promise.resolve({ turnId: 't_x', sessionId: input.contactId ?? 'x', replayed: false });
    },
    cancelRunning: async () => Promise.resolve(),
    findAccepted: async () => Promise.resolve(undefined),
  };
  desk = new HandoffRequests({ turns, calls: new HandoffNotifications({ turns, log }) });
});

function runner(model: ChosenModel = new Script(), live?: WorkerChannels): TurnRunner {
  return new TurnRunner({
    models: { forRef: () => model },
    capabilityFactories: {
      ...unconnected,
      requestStaff: (run) => async (asked) => desk.ask(run.scope, run.turn, asked),
    },
    channels: { ...live, commands: new HandoffCommands(desk) },
    followUps: [deliverStaffMessage],
    metrics: new TurnMetrics(newMetrics('test'), () => 0),
    log,
  });
}

const buildRun = (turn: Partial<AcceptedTurn>, parts: Partial<TurnRun> = {}): ReturnType<typeof turnRun> => turnRun(scope, parts, turn);

async function saved(sessionId: string): Promise<Session> {
  const session = await scope.sessions.load(sessionId);
  if (session === undefined) throw new Error('no session was published');
  return session;
}

async function hear(text: string, model: ChosenModel = new Script(say('Hello.'))): Promise<Session> {
  await runner(model).runTurn(buildRun({ ...bob, text }));
  return saved(bob.sessionId);
}

async function notifyOwner(): Promise<void> {
  await scope.updateSettings({ handoff: { notify: { channel: 'telegram', to: '9001' } } });
}

/** The service's answer to this text from a channel; the model is not asked. */
async function replyTo(text: string, turn: Partial<AcceptedTurn> = ownerTurn): Promise<string> {
  const run = buildRun({ ...turn, text });
  await runner(new Script(say('The model was asked.'))).runTurn(run);
  const session = await saved(run.turn.sessionId);
  const said = session.messages.findLast((message) => message.turnId === run.turn.turnId && message.role === 'assistant');
  return said?.role === 'assistant' ? said.text : '';
}

describe('a turn of a conversation that a staff member has', () => {
  it('keeps the message, answers nothing, and never asks a model', async () => {
    await hear('hi');
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator });
    const silent = new Script();
    const run = buildRun({ ...bob, text: 'is anybody there?' });
    const end = await runner(silent).runTurn(run);
    expect(end.event).toEqual({ type: 'done', data: { inputTokens: 0, outputTokens: 0, finishReason: 'stop' } });
    expect(silent.requests).toEqual([]);
    expect(run.writer.events).toEqual([]);
    const session = await saved(bob.sessionId);
    expect(session.messages.at(-1)).toMatchObject({ role: 'user', text: 'is anybody there?' });
    expect(session.turns.at(-1)).toMatchObject({ status: 'done', finishReason: 'stop', heldBack: 'handoff', models: [], steps: [] });
  });

  it('keeps the files that came with the message for later readers', async () => {
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator });
    const upload = await scope.uploads.save({ name: 'receipt.png', type: 'image/png', bytes: Buffer.from('png') });
    const live: WorkerChannels = {
      fetchFiles: async (_run, turns) => Promise.resolve(new Map(turns.map(({ turnId }) => [turnId, [{ upload }]]))),
      showTyping: () => {
        throw new Error('must not type');
      },
    };
    await runner(new Script(), live).runTurn(buildRun({ ...bob, text: 'here it is' }));
    expect((await saved(bob.sessionId)).messages).toMatchObject([{ text: 'here it is', attachments: [{ name: 'receipt.png' }] }]);
  });

  it('is answered in order by the staff member, whose words go to the channel once, however often they are run', async () => {
    await hear('hi');
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator });
    await hear('is anybody there?');
    const run = buildRun({ ...bob, channelMessage: undefined, origin: 'person', by: anna, text: 'Anna here.' });
    const end = await runner().runTurn(run);
    expect(end.event).toEqual({ type: 'done', data: { inputTokens: 0, outputTokens: 0, finishReason: 'stop' } });
    await expect(runner().runTurn(run)).resolves.toEqual({ ...end, isRepeated: true });
    expect(run.writer.events).toEqual([{ type: 'text_delta', data: { delta: 'Anna here.' } }]);
    const session = await saved(bob.sessionId);
    expect(session.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(session.messages.at(-1)).toMatchObject({ text: 'Anna here.', by: anna });
    expect(session.turns.at(-1)).toMatchObject({ origin: 'person', usage: { inputTokens: 0, outputTokens: 0 }, models: [], steps: [] });
    expect(await scope.outbox.waiting()).toMatchObject([{ kind: 'person', channel: 'channel_c', to: '4242', text: 'Anna here.' }]);
  });

  it('sends what a staff member wrote once when it was journaled by an attempt that died', async () => {
    await hear('hi');
    const first = buildRun({ ...bob, channelMessage: undefined, origin: 'person', by: anna, text: 'Anna here.' });
    await runner().runTurn(first);
    const { writer } = first;
    await scope.removeSession(bob.sessionId);
    await hear('hi');
    const second = buildRun(first.turn, { steps: writer.steps, attempt: 2 });
    await runner().runTurn(second);
    expect(second.writer.events).toEqual([]);
    expect((await saved(bob.sessionId)).messages.filter((message) => 'by' in message)).toHaveLength(1);
  });

  it('leaves no message of a user behind when the staff member’s message is not sent', async () => {
    await hear('hi');
    const run = buildRun({ ...bob, channelMessage: undefined, origin: 'person', by: anna, text: 'Anna here.' });
    await runner().failTurn(run, 'turn_crashed');
    const session = await saved(bob.sessionId);
    expect(session.messages).toMatchObject([{ text: 'hi' }, { text: 'Hello.' }]);
    expect(session.turns.at(-1)).toMatchObject({ status: 'failed' });
    expect(await scope.outbox.waiting()).toEqual([]);
  });

  it('is the agent’s again after its end, who sees what it did not answer and who did', async () => {
    await hear('hi');
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator });
    await hear('is anybody there?');
    await runner().runTurn(buildRun({ ...bob, channelMessage: undefined, origin: 'person', by: anna, text: 'Anna here.' }));
    await scope.handoffs.resume(bob.sessionId, operator);
    const model = new Script(say('Good morning.'));
    const session = await hear('and now?', model);
    const [, , waited, person, now] = model.requests[0]?.messages ?? [];
    expect(JSON.stringify(waited)).toContain('You were not shown it then and did not answer it');
    expect(person).toMatchObject({
      role: 'assistant',
      text: expect.stringMatching(/^\[Note of the service: a person of the team wrote[^]*Anna here\.$/u),
    });
    expect(JSON.stringify(now)).not.toContain('You were not shown');
    expect(session.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant']);
    expect(session.messages[3]).toMatchObject({ text: 'Anna here.' });
  });

  it('may finish its answer where it has requested the staff member itself', async () => {
    const model = new Script(call('c1', 'handoff', { action: 'request', reason: 'Refund.' }), say('Somebody will answer.'));
    const run = buildRun({ ...bob, text: 'a person, please' });
    await runner(model).runTurn(run);
    expect((await saved(bob.sessionId)).messages.at(-1)).toMatchObject({ text: 'Somebody will answer.' });
    // Also in an attempt that goes on after the call.
    const steps = run.writer.steps.filter((step) => step.kind !== 'assistant' || step.message.toolCalls !== undefined);
    const again = new Script(say('Somebody will answer.'));
    await scope.sessions.remove(bob.sessionId);
    await runner(again).runTurn(buildRun(run.turn, { steps, attempt: 2 }));
    expect(again.requests).toHaveLength(1);
  });

  it('ends where it stands when a staff member took over before it could go on', async () => {
    const first = buildRun({ ...bob, text: 'hi' });
    await runner(new Script(call('c1', 'list_files', {}), say('x'))).runTurn(first);
    const intent = first.writer.steps.findIndex(({ kind }) => kind === 'intent');
    await scope.sessions.remove(bob.sessionId);
    await scope.handoffs.request(bob.sessionId, { reason: 'Mine.', by: anna });
    const silent = new Script();
    await runner(silent).runTurn(buildRun(first.turn, { steps: first.writer.steps.slice(0, intent + 1), attempt: 2 }));
    expect(silent.requests).toEqual([]);
    expect((await saved(bob.sessionId)).messages.at(-1)).toMatchObject({
      role: 'tool',
      output: expect.stringContaining('a person took the conversation over'),
    });
  });
});

describe('a handoff that is asked for', () => {
  async function ask(): Promise<void> {
    const model = new Script(call('c1', 'handoff', { action: 'request', reason: 'Wants a refund.' }), say('Somebody will answer.'));
    await hear('a person, please', model);
  }

  it('is reported to the contact, to the staff member whom the settings name, and to the owner’s agent', async () => {
    await scope.updateSettings({ handoff: { notify: { channel: 'telegram', to: '9001' }, notice: 'A colleague takes over.', hours: 12 } });
    await ask();
    const sent = await scope.outbox.waiting();
    expect(sent.map(({ kind, to }) => [kind, to])).toEqual(
      expect.arrayContaining([
        ['notice', '4242'],
        ['notice', '9001'],
      ]),
    );
    const call_ = sent.find(({ to }) => to === '9001')?.text ?? '';
    expect(call_).toContain('4242 on telegram');
    expect(call_).toContain('Wants a refund.');
    expect(call_).toContain('> a person, please');
    expect(call_).toContain(`/answer ${bob.sessionId.slice(0, 4)}`);
    expect(sent.find(({ to }) => to === '4242')).toMatchObject({ text: 'A colleague takes over.', sessionId: bob.sessionId });
    expect(accepted).toMatchObject([{ origin: 'handoff', agent: 'admin', sender: null }]);
    expect(accepted[0]?.text).toContain(bob.sessionId);
    // The turn contains a stranger's text: none of its tools changes or sends anything.
    expect(accepted[0]?.tools).not.toEqual(expect.arrayContaining(['message']));
    expect((await scope.handoffs.find(bob.sessionId))?.until).not.toBeNull();
    expect(await scope.handoffs.pending()).toEqual([]);
  });

  it('is reported once, by the first that finds it unreported', async () => {
    await notifyOwner();
    await hear('hi');
    const call_ = {
      agent: 'cs',
      channel: 'channel_c',
      sender: '4242',
      channelAddress: null,
      lastWords: 'hi',
      callsOwner: true,
    } as const;
    // The state that a process leaves when it dies right after the request.
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator, call: call_ });
    expect(await scope.handoffs.pending()).toHaveLength(1);
    const refusing = new HandoffNotifications({ turns: { accept: async () => Promise.reject(new Error('no Redis')) }, log });
    await refusing.sendPending(scope);
    expect(await scope.handoffs.pending()).toHaveLength(1);
    const heard: string[] = [];
    const calls = new HandoffNotifications({
      turns: {
        accept: async (_scope, input) => {
          accepted.push(input);
          return Promise.resolve({ turnId: 't', sessionId: 's', replayed: false });
        },
      },
      log,
      onRequested: async (_scope, { id }) => {
        heard.push(id);
        return Promise.resolve();
      },
    });
    await calls.sendPending(scope);
    await calls.sendPending(scope);
    expect(await scope.outbox.waiting()).toHaveLength(1);
    expect(accepted.map(({ dedupeId }) => dedupeId)).toEqual([`handoff:${String(heard[0])}`]);
    expect(heard).toHaveLength(1);
  });

  it('waits for its handoff by no clock but that of the process that looks', async () => {
    const call_ = { agent: 'cs', channel: 'web', sender: null, channelAddress: null, lastWords: null, callsOwner: true } as const;
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator, call: call_ });
    // As between the two files, by a process whose clock is years behind.
    await rm(join(scope.root, 'handoffs', `${bob.sessionId}.json`));
    const wall = jest.spyOn(Date, 'now').mockReturnValue(Date.parse('2100-01-01T00:00:00Z'));
    let now = 0;
    const calls = new HandoffNotifications({
      turns: { accept: async () => Promise.reject(new Error('nothing to do')) },
      log,
      now: () => now,
    });
    await calls.sendPending(scope);
    expect(await scope.handoffs.pending()).toHaveLength(1);
    now = 61_000;
    await calls.sendPending(scope);
    expect(await scope.handoffs.pending()).toEqual([]);
    wall.mockRestore();
  });

  it('is not reported when it is over by then', async () => {
    await notifyOwner();
    const call_ = { agent: 'cs', channel: 'web', sender: null, channelAddress: null, lastWords: null, callsOwner: true } as const;
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator, call: call_ });
    await scope.handoffs.resume(bob.sessionId, operator);
    const calls = new HandoffNotifications({ turns: { accept: async () => Promise.reject(new Error('nothing to do')) }, log });
    await calls.sendPending(scope);
    expect(await scope.handoffs.pending()).toEqual([]);
    expect(await scope.outbox.waiting()).toEqual([]);
  });
});

describe('a command on a channel', () => {
  const code = bob.sessionId.slice(0, 4);

  beforeEach(async () => {
    await notifyOwner();
    await hear('where is my parcel?');
    await scope.handoffs.request(bob.sessionId, { reason: 'Refund.', by: operator });
  });

  it('lists who waits', async () => {
    expect(await replyTo('/handoffs')).toContain(`${code}  "where is my parcel?" on telegram`);
  });

  it('answers in the agent’s place', async () => {
    expect(await replyTo(`/answer ${code} It is on its way.\nPromised.`)).toContain('Passed on to "where is my parcel?"');
    expect(accepted).toMatchObject([
      { origin: 'person', contactId: bob.sessionId, text: 'It is on its way.\nPromised.', by: { kind: 'contact', sender: '9001' } },
    ]);
  });

  it('gives the conversation back', async () => {
    expect(await replyTo(`/resume ${code}`)).toContain('Given back');
    expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(false);
    expect(await scope.handoffs.find(bob.sessionId)).toMatchObject({ resumedBy: { kind: 'contact', sender: '9001' } });
    expect(await replyTo('/handoffs')).toBe('No conversation waits for a person.');
  });

  it.each(['/answer', '/answer zzzz hello', '/answer 1 hello', '/resume', '/resume ffff', `/answer ${code}`])(
    'does nothing where it is not clear what is meant: %s',
    async (text) => {
      expect(await replyTo(text)).not.toContain('The model was asked');
      expect(accepted).toEqual([]);
      expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(true);
    },
  );

  it.each([
    ['another sender', { ...ownerTurn, sender: '5555', sessionId: deriveSessionId('cs', 'channel_c', '5555') }],
    [
      'a sender of the same id on another channel',
      { ...ownerTurn, channel: 'channel_b', sessionId: deriveSessionId('cs', 'channel_b', '9001') },
    ],
    ['a key holder with that name', { ...ownerTurn, origin: 'api', channelMessage: undefined }],
    ['the same sender in a group', { ...ownerTurn, channelMessage: { ...channelMessage, isGroup: true } }],
  ] as const)('is no more than text from %s', async (_who, turn) => {
    expect(await replyTo(`/resume ${code}`, turn)).toBe('The model was asked.');
    expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(true);
  });

  it('is not taken along by a message before it', async () => {
    const follower = buildRun({ ...ownerTurn, text: `/resume ${code}`, collects: true }).turn;
    await scope.inbox.accept(follower);
    const run = buildRun(
      { ...ownerTurn, text: 'one moment', collects: true },
      { waitingBehind: async () => Promise.resolve([follower.turnId]) },
    );
    await runner(new Script(say('Take your time.'))).runTurn(run);
    const session = await saved(ownerTurn.sessionId);
    expect(session.messages[0]).toMatchObject({ role: 'user', text: 'one moment' });
    expect(session.turns.map(({ id }) => id)).toEqual([run.turn.turnId]);
  });

  it('is text when it only looks like one', async () => {
    expect(await replyTo('/answers please')).toBe('The model was asked.');
    expect(await replyTo(`please /resume ${code}`)).toBe('The model was asked.');
  });
});
