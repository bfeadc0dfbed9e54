import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { limits, type AcceptedTurn, type ChannelMessage, type Session, type TurnStep, type UploadRef } from '@concierge/contract';
import { ModelError } from '@concierge/model';
import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { TurnCancelled, WorkerDraining, type TurnRun } from '@concierge/turn';
import { call, say, Script, turnRun, usage } from '../fixtures/scripted-run.ts';
import type { CapabilityFactories } from '../capabilities/turn-capabilities.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { TurnMetrics } from '../metrics.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
let scope: TenantScope;

setUpOnce(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
});

function runner(...replies: ConstructorParameters<typeof Script>): { runner: TurnRunner; script: Script } {
  const script = new Script(...replies);
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  return { runner: new TurnRunner({ models: { forRef: () => script }, capabilityFactories: unconnected, metrics, log }), script };
}

const channelMessage: ChannelMessage = { address: { to: '491', thread: null }, isGroup: false, messageRef: 'm', media: [], replyTo: null };

let acceptedAtMs = Date.parse('2026-11-20T10:00:00Z');

/** A message from a channel, on disk. */
async function accept(sessionId: string, text: string, facts: Partial<AcceptedTurn> = {}): Promise<AcceptedTurn> {
  acceptedAtMs += 1;
  const turn: AcceptedTurn = {
    version: 1,
    turnId: `t_${randomBytes(16).toString('hex')}`,
    tenantId: 'acme',
    sessionId,
    acceptedAtMs,
    origin: 'webhook',
    agent: 'cs',
    authority: 'cs',
    channel: 'channel_a',
    sender: '491',
    text,
    attachments: [],
    requestHash: `hash of ${text}`,
    keyId: null,
    collects: true,
    channelMessage,
    ...facts,
  };
  await scope.inbox.accept(turn, { isUnique: true });
  return turn;
}

/** Turns of a new session, in the order in which they wait. */
async function lane(...messages: readonly (string | Partial<AcceptedTurn>)[]): Promise<AcceptedTurn[]> {
  const sessionId = randomBytes(16).toString('hex');
  const turns: AcceptedTurn[] = [];
  for (const message of messages)
    turns.push(typeof message === 'string' ? await accept(sessionId, message) : await accept(sessionId, message.text ?? '', message));
  return turns;
}

function buildRun([head, ...others]: readonly AcceptedTurn[], parts: Partial<TurnRun> = {}): ReturnType<typeof turnRun> {
  const waitingBehind = async (atMost: number): Promise<string[]> => Promise.resolve(others.slice(0, atMost).map(({ turnId }) => turnId));
  return turnRun(scope, { waitingBehind, ...parts }, head);
}

async function readSaved([turn]: readonly AcceptedTurn[]): Promise<Session> {
  const session = await scope.sessions.load(turn?.sessionId ?? '');
  if (session === undefined) throw new Error('no session was published');
  return session;
}

const toIds = (turns: readonly AcceptedTurn[]): string[] => turns.map(({ turnId }) => turnId);
const userTexts = ({ messages }: Session): string[] => messages.flatMap((message) => (message.role === 'user' ? [message.text] : []));

describe('messages that wait behind the one that is answered', () => {
  it('are one message with it, get one answer, and each have a record', async () => {
    const turns = await lane('hello', 'are you there?', 'I need a table');
    const { runner: worker, script } = runner(say('Of course.'));
    await worker.runTurn(buildRun(turns));
    expect(script.requests).toHaveLength(1);
    expect(JSON.stringify(script.requests[0]?.messages)).toContain(String.raw`hello\n\nare you there?\n\nI need a table`);
    const session = await readSaved(turns);
    expect(session.messages).toMatchObject([
      { role: 'user', turnId: turns[0]?.turnId, text: 'hello\n\nare you there?\n\nI need a table' },
      { role: 'assistant', text: 'Of course.' },
    ]);
    const [head = '', second, third] = toIds(turns);
    expect(session.turns).toMatchObject([
      { id: head, status: 'done', usage: { inputTokens: usage.inputTokens } },
      {
        id: second,
        status: 'done',
        joinedTo: head,
        usage: { inputTokens: 0, outputTokens: 0 },
        models: [],
        requestHash: 'hash of are you there?',
      },
      { id: third, status: 'done', joinedTo: head, finishReason: 'stop', steps: [] },
    ]);
    for (const turnId of [second ?? '', third ?? ''])
      expect((await scope.index.findTurn(turnId))?.record).toMatchObject({ joinedTo: head });
  });

  it('are one message where the channel has made several of an album, and one beside a later message', async () => {
    const media = [{ kind: 'image', id: 'p', url: null, mediaType: null, fileName: null, bytes: null, sha256: null }] as const;
    const picture = { channelMessage: { ...channelMessage, media: [...media], albumId: '131' } };
    const turns = await lane(
      { ...picture, text: 'our house' },
      { ...picture, text: '' },
      { ...picture, text: '' },
      'what would a roof cost?',
    );
    const { runner: worker, script } = runner(say('A lot.'));
    await worker.runTurn(buildRun(turns));
    const note = '[Picture: it was not fetched.]';
    const asked = JSON.stringify(script.requests[0]?.messages);
    expect(asked).toContain(['our house', note, note, String.raw`${note}\n\nwhat would a roof cost?`].join(String.raw`\n`));
  });

  it('only have their end announced when their turn comes', async () => {
    const turns = await lane('one', 'two');
    const { runner: worker } = runner(say('both'));
    await worker.runTurn(buildRun(turns));
    const end = await worker.runTurn(buildRun(turns.slice(1)));
    expect(end).toEqual({
      isRepeated: true,
      answered: toIds(turns),
      event: { type: 'done', data: { inputTokens: 0, outputTokens: 0, finishReason: 'stop' } },
    });
    expect((await readSaved(turns)).revision).toBe(1);
  });

  it('are those of the same sender in the same place alone, without a gap', async () => {
    const strangers: readonly Partial<AcceptedTurn>[] = [
      { collects: undefined },
      { sender: '492' },
      { channelMessage: { ...channelMessage, address: { to: '491', thread: '7' } } },
      { channelMessage: undefined },
      { authority: 'admin' },
      { origin: 'person' },
    ];
    for (const other of strangers) {
      const turns = await lane('one', 'two', { text: 'three', ...other }, 'four');
      await runner(say('ok')).runner.runTurn(buildRun(turns));
      expect(userTexts(await readSaved(turns))).toEqual(['one\n\ntwo']);
    }
  });

  it('do not join one that does not collect itself', async () => {
    const turns = await lane({ text: 'one', collects: undefined }, 'two');
    await runner(say('ok')).runner.runTurn(buildRun(turns));
    expect((await readSaved(turns)).turns).toHaveLength(1);
  });

  it('stay within what one message may be', async () => {
    const long = 'x'.repeat(limits.messageMaxCharacters - 10);
    const fits = await lane(long, 'y'.repeat(8), 'z');
    await runner(say('ok')).runner.runTurn(buildRun(fits));
    expect(userTexts(await readSaved(fits))).toEqual([`${long}\n\n${'y'.repeat(8)}`]);

    const many = await lane(...Array.from({ length: limits.collectMaxMessages + 5 }, (_, place) => String(place)));
    await runner(say('ok')).runner.runTurn(buildRun(many));
    expect((await readSaved(many)).turns).toHaveLength(limits.collectMaxMessages);

    const photo = { kind: 'image', id: 'p', url: null, mediaType: null, fileName: null, bytes: null, sha256: null } as const;
    const photos = (count: number): Partial<AcceptedTurn> => ({
      channelMessage: { ...channelMessage, media: Array.from({ length: count }, () => photo) },
    });
    const pictures = await lane(photos(6), photos(4), photos(1));
    await runner(say('ok')).runner.runTurn(buildRun(pictures));
    expect((await readSaved(pictures)).turns).toHaveLength(2);
  });

  it('leave an album that does not fit to the next answer, as a whole', async () => {
    const photo = { kind: 'image', id: 'p', url: null, mediaType: null, fileName: null, bytes: null, sha256: null } as const;
    const album = (albumId: string): Partial<AcceptedTurn>[] =>
      Array.from({ length: 6 }, () => ({ channelMessage: { ...channelMessage, media: [photo], albumId } }));
    const lines = Array.from({ length: limits.collectMaxMessages - 3 }, () => 'look');
    for (const before of [album('131'), lines]) {
      const turns = await lane(...before, ...album('132'));
      const [first, second] = [toIds(turns.slice(0, before.length)), toIds(turns.slice(before.length))];
      const { runner: worker } = runner(say('Nice.'), say('Nice, too.'));
      await worker.runTurn(buildRun(turns));
      expect((await readSaved(turns)).turns.map(({ id }) => id)).toEqual(first);
      await worker.runTurn(buildRun(turns.slice(before.length)));
      expect((await readSaved(turns)).turns.slice(before.length).map(({ id }) => id)).toEqual(second);
    }
  });

  it('leave out one that was cancelled, which ends in its own place', async () => {
    const turns = await lane('one', 'forget this', 'three');
    const [, cancelled] = turns;
    await scope.inbox.markCancelled(cancelled?.turnId ?? '');
    const { runner: worker } = runner(say('ok'));
    await worker.runTurn(buildRun(turns));
    expect(userTexts(await readSaved(turns))).toEqual(['one\n\nthree']);
    const stop = new AbortController();
    stop.abort(new TurnCancelled('cancelled before it began'));
    await worker.runTurn(buildRun(turns.slice(1), { signal: stop.signal }));
    const session = await readSaved(turns);
    expect(session.turns.map(({ id, status, joinedTo }) => [id, status, joinedTo])).toEqual([
      [turns[0]?.turnId, 'done', undefined],
      [turns[2]?.turnId, 'done', turns[0]?.turnId],
      [cancelled?.turnId, 'cancelled', undefined],
    ]);
  });
});

describe('what tools see of several messages', () => {
  it('is one message: its words, and all its files', async () => {
    const attached = async (name: string): Promise<UploadRef> =>
      scope.uploads.save({ name, type: 'text/plain', bytes: Buffer.from(name), text: name });
    const [one, two] = [await attached('one.txt'), await attached('two.txt')];
    const turns = await lane({ text: 'see', attachments: [one] }, { text: 'https://example.org/menu', attachments: [two] });
    const seen: AcceptedTurn[] = [];
    const capabilityFactories: CapabilityFactories = {
      ...unconnected,
      web: (run) => {
        seen.push(run.turn);
        return unconnected.web(run, { access: 'cs', tools: [] });
      },
    };
    const metrics = new TurnMetrics(newMetrics('test'), () => 0);
    const fetching = call('c2', 'web_fetch', { url: 'https://example.org/menu' });
    const script = new Script(call('c1', 'view_attachment', { id: two.id }), fetching, say('ok'));
    await new TurnRunner({ models: { forRef: () => script }, capabilityFactories, metrics, log }).runTurn(buildRun(turns));
    expect(seen).toMatchObject([{ turnId: turns[0]?.turnId, text: 'see\n\nhttps://example.org/menu', attachments: [one, two] }]);
    expect((await readSaved(turns)).messages[2]).toMatchObject({
      role: 'tool',
      isError: false,
      output: expect.stringContaining('two.txt'),
    });
  });
});

describe('a turn that took others along and does not end well', () => {
  it('fails with them', async () => {
    const turns = await lane('one', 'two');
    await runner(new ModelError('rejected', 'no')).runner.runTurn(buildRun(turns));
    const failed = { status: 'failed', error: { code: 'provider_error' } };
    expect((await readSaved(turns)).turns).toMatchObject([failed, { ...failed, joinedTo: turns[0]?.turnId }]);
  });

  it('is cancelled with them', async () => {
    const turns = await lane('one', 'two');
    const stop = new AbortController();
    const cancelling = (): ReturnType<typeof say> => {
      stop.abort(new TurnCancelled('cancelled'));
      return say('too late');
    };
    await runner(cancelling).runner.runTurn(buildRun(turns, { signal: stop.signal }));
    expect((await readSaved(turns)).turns).toMatchObject([{ status: 'cancelled' }, { status: 'cancelled', joinedTo: turns[0]?.turnId }]);
  });

  it('ends alone when it was cancelled before it began, or its agent cannot be used: the others get an answer', async () => {
    const stop = new AbortController();
    stop.abort(new TurnCancelled('cancelled before it began'));
    const cancelled = await lane('one', 'two');
    const { runner: worker, script } = runner(say('Here you are.'));
    await worker.runTurn(buildRun(cancelled, { signal: stop.signal }));
    expect((await readSaved(cancelled)).turns).toMatchObject([{ id: cancelled[0]?.turnId, status: 'cancelled' }]);
    await worker.runTurn(buildRun(cancelled.slice(1)));
    expect(script.requests).toHaveLength(1);
    expect((await readSaved(cancelled)).turns[1]).toMatchObject({ id: cancelled[1]?.turnId, status: 'done' });

    const missing = await lane({ text: 'one', agent: 'nobody' }, { text: 'two', agent: 'nobody' });
    await worker.runTurn(buildRun(missing));
    expect((await readSaved(missing)).turns).toMatchObject([{ id: missing[0]?.turnId, status: 'failed' }]);
  });

  it('is given up with them after it stopped its worker several times', async () => {
    const turns = await lane('one', 'two');
    const first = buildRun(turns);
    await expect(runner(new Error('the worker dies')).runner.runTurn(first)).rejects.toThrow('the worker dies');
    await runner().runner.failTurn(buildRun(turns, { steps: first.writer.steps, attempt: 4 }), 'turn_crashed');
    expect((await readSaved(turns)).turns).toMatchObject([{ status: 'failed' }, { status: 'failed', joinedTo: turns[0]?.turnId }]);
  });
});

describe('a worker that dies while it answers several messages', () => {
  /** What the turn had recorded when its worker died. */
  async function killed(turns: readonly AcceptedTurn[]): Promise<readonly TurnStep[]> {
    const run = buildRun(turns);
    await expect(runner(new WorkerDraining('gone')).runner.runTurn(run)).rejects.toThrow('gone');
    return run.writer.steps;
  }

  it('is followed by one that answers the same, whatever has come meanwhile', async () => {
    const turns = await lane('one', 'two');
    const steps = await killed(turns);
    expect(steps).toMatchObject([{ kind: 'prompt', joined: [turns[1]?.turnId] }]);
    const late = await accept(turns[0]?.sessionId ?? '', 'three');
    const { runner: worker, script } = runner(say('ok'), say('and this'));
    await worker.runTurn(buildRun([...turns, late], { steps, attempt: 2 }));
    await worker.runTurn(buildRun([turns[1] ?? late, late]));
    await worker.runTurn(buildRun([late]));
    expect(script.requests).toHaveLength(2);
    const session = await readSaved(turns);
    expect(userTexts(session)).toEqual(['one\n\ntwo', 'three']);
    expect(session.turns.map(({ id }) => id)).toEqual([...toIds(turns), late.turnId]);
  });

  it('is followed by one that chooses anew when nothing of it was recorded', async () => {
    const turns = await lane('one', 'two');
    await killed(turns);
    const late = await accept(turns[0]?.sessionId ?? '', 'three');
    await runner(say('ok')).runner.runTurn(buildRun([...turns, late], { attempt: 2 }));
    expect(userTexts(await readSaved(turns))).toEqual(['one\n\ntwo\n\nthree']);
  });

  it('is followed by one that announces what was published, to each of them', async () => {
    const turns = await lane('one', 'two');
    await runner(say('ok')).runner.runTurn(buildRun(turns));
    const { runner: worker, script } = runner();
    for (const run of [buildRun(turns, { attempt: 2 }), buildRun(turns.slice(1)), buildRun(turns.slice(1), { attempt: 2 })])
      expect(await worker.runTurn(run)).toMatchObject({ isRepeated: true, event: { type: 'done' } });
    expect(script.requests).toEqual([]);
    expect(userTexts(await readSaved(turns))).toEqual(['one\n\ntwo']);
  });
});
