import { Writable } from 'node:stream';
import { AcceptedTurn, LogLine } from '@concierge/contract';
import { background, connectRedis } from '@concierge/runtime';
import { silentLog as log, TestRedis } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { keyOf, Lanes, LoadSeries, viewOverview, WaitingRoom } from '@concierge/turn';
import { describe, expect, it } from '@jest/globals';
import { redraw } from '../src/commands/waiting.ts';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;
let redis: ReturnType<typeof connectRedis>;
let lanes: Lanes;
const turnId = `t_${'a'.repeat(32)}`;

setUpOnce(async (stack) => {
  const server = stack.use(await TestRedis.start());
  concierge = stack.use(await CommandLine.over({ REDIS_URL: server.url }));
  redis = connectRedis({ url: server.url, role: 'worker', log });
  stack.defer(() => redis.disconnect());
  lanes = new Lanes(redis);
  const { runId } = await lanes.readiness();
  await lanes.beginRestore('test');
  await lanes.open({ runId, restore: 'test', generation: 1 });
  const turn = AcceptedTurn.parse({
    version: 1,
    turnId,
    tenantId: 'acme',
    sessionId: 'b'.repeat(32),
    acceptedAtMs: Date.now(),
    origin: 'api',
    agent: 'cs',
    authority: 'cs',
    channel: 'web',
    sender: 'ann',
    text: 'Hello',
    attachments: [],
    requestHash: 'h',
    keyId: null,
  });
  await lanes.enqueue(turn, { busy: 'queue', found: 'accepted' });
});

describe('concierge waiting', () => {
  it('lists who waits, for what and since when', async () => {
    expect(await concierge.json('waiting')).toMatchObject([
      { tenantId: 'acme', turnId, reason: 'no_worker', why: 'It may run, and no worker takes turns.', turns: 1 },
    ]);
    const { out } = await concierge.run('waiting', '--tenant', 'acme');
    expect(out).toMatch(/^WAITED +TENANT +AGENT +TURNS +FIRST TURN +WHY +STARTS WHEN\n/u);
    expect(out).toContain(turnId);
    expect((await concierge.run('waiting', '--tenant', 'other')).out).toBe('No turn waits.\n');
  });

  it.each(['abc', '0', '1.5', '-1'])('is refused %s rows', async (limit) => {
    const { code, out, err } = await concierge.run('waiting', `--limit=${limit}`);
    expect({ code, out, err }).toEqual({ code: 1, out: '', err: `concierge: ${limit} is not a number of rows.\n` });
  });
});

describe('a command that needs Redis', () => {
  it('is refused in a line where the services spread tenants over other slots', async () => {
    const { code, out, err } = await concierge.runWith({ REDIS_SLOTS: '3' }, 'waiting');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('REDIS_SLOTS: must be 1, as it is for the services (given: 3)');
  });
});

describe('concierge worker list', () => {
  it('fails where no worker takes turns', async () => {
    expect(await concierge.run('worker', 'list')).toMatchObject({ code: 1, out: 'No worker lives.\n' });
  });
});

describe('concierge top', () => {
  it('is printed once where it is piped', async () => {
    const { code, out } = await concierge.run('top');
    expect(code).toBe(0);
    expect(out).toContain('no worker takes turns');
    expect(out).toContain(turnId);
    expect(out).not.toContain('\u001B');
    expect(await concierge.json('top')).toMatchObject({ running: 0, slots: 0, waiting: [{ turnId }] });
  });

  it('stays on a terminal while Redis is away, with what was seen last, and ends at what no wait mends', async () => {
    const first = { overview: viewOverview(await new WaitingRoom(redis).look()), waiting: [], workers: [], isWhole: true };
    const stopped = new AbortController();
    const frames: string[] = [];
    const terminal = new Writable({
      write: (frame: Buffer, _encoding, done) => {
        frames.push(frame.toString());
        if (frames.length === 3) stopped.abort();
        done();
      },
    });
    const [away, wrong] = [Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }), new TypeError('wrong')];
    const looks = [async () => Promise.reject(away), async () => Promise.resolve(first), async () => Promise.resolve(first)];
    const look = async (): Promise<typeof first> => (looks.shift() ?? (async () => Promise.reject(wrong)))();
    await redraw(first, { look, terminal, everyMs: 1, signal: stopped.signal });
    expect(frames.map((frame) => frame.includes('Redis does not answer'))).toEqual([false, true, false]);
    expect(frames[1]).toContain('no worker takes turns');
    await expect(redraw(first, { look, terminal, everyMs: 1, signal: new AbortController().signal })).rejects.toBe(wrong);
  });
});

describe('concierge series', () => {
  it('shows what was sampled, and who samples where nothing was', async () => {
    expect((await concierge.run('series')).out).toBe('Nothing was sampled yet: the cron service does it.\n');
    await new LoadSeries(redis).add(await new WaitingRoom(redis).look());
    const { code, out } = await concierge.run('series', '--range', '24h');
    expect(code).toBe(0);
    expect(out).toMatch(/^AT +WAITING +OLDEST .*\n\S+ +1 +[\d.]+ s +0 +0 +0 +0 *\n$/u);
    expect(await concierge.json('series')).toMatchObject([{ waiting: 1, running: 0, slots: 0 }]);
    const wrong = await concierge.run('series', '--range', 'ever');
    expect(wrong.code).not.toBe(0);
    expect(wrong.err).toContain('1h');
  });
});

describe('concierge logs', () => {
  it('shows lines of a turn, of a level and those above it, the newest first', async () => {
    const keep = async (level: number, msg: string, of: object = {}): Promise<unknown> =>
      redis.xadd(keyOf.keptLog, '*', 'line', JSON.stringify({ level, time: new Date().toISOString(), service: 'worker', msg, ...of }));
    await keep(30, 'a turn ended', { turnId, tenantId: 'acme' });
    await keep(50, 'a model call failed', { turnId, tenantId: 'acme' });
    await keep(40, 'of another one');
    const messages = async (...args: string[]): Promise<unknown[]> =>
      LogLine.array()
        .parse(await concierge.json('logs', ...args))
        .map(({ message }) => message);
    expect(await messages(turnId)).toEqual(['a model call failed', 'a turn ended']);
    expect(await messages('--level', 'warn')).toEqual(['of another one', 'a model call failed']);
    expect(await messages('--limit', '1')).toEqual(['of another one']);
    expect((await concierge.run('logs', turnId)).out).toMatch(
      /^AT +LEVEL +SERVICE +OF +MESSAGE\n\S+ +error +worker +t_a+ +a model call failed\n/u,
    );
    expect((await concierge.run('logs', '--service', 'cron')).out).toBe('No such line is kept.\n');
    expect(await concierge.run('logs', '--limit', '0')).toMatchObject({ code: 1, out: '' });
  });
});

describe('concierge worker drain', () => {
  it('has a worker take no new turns and take them again, on record, and says where there is none', async () => {
    const facts = { version: '1', concurrency: 4, draining: false, stallMs: 0, turns: [turnId] };
    const beat = async (): Promise<void> => lanes.heartbeat({ id: 'w_one', share: 2, facts, leaving: false });
    await beat();
    // As a worker does: one that is silent for ten seconds lives no more, and commands may take longer.
    const beating = setInterval(() => background(beat(), log), 500);
    using cleanUp = new DisposableStack();
    cleanUp.defer(() => clearInterval(beating));
    expect(await concierge.run('worker', 'drain', 'w_one')).toMatchObject({
      code: 0,
      out: 'w_one takes no new turns, within seconds; 1 go on.\n',
    });
    expect(await redis.exists(keyOf.drained('w_one'))).toBe(1);
    expect(await concierge.run('worker', 'undrain', 'w_one')).toMatchObject({ code: 0, out: 'w_one takes turns again.\n' });
    expect(await redis.exists(keyOf.drained('w_one'))).toBe(0);
    const gone = await concierge.run('worker', 'drain', 'w_two');
    expect(gone.code).toBe(1);
    expect(gone.err).toContain('No worker w_two lives: concierge worker list');
    expect(await concierge.json('audit')).toMatchObject([
      { act: 'worker.undrain', target: 'w_one' },
      { act: 'worker.drain', target: 'w_one' },
    ]);
  });
});
