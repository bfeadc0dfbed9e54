import { AcceptedTurn, OperatedTurn, PersonMessageReceipt, TurnView, type Session, type TurnRecord } from '@concierge/contract';
import { deriveSessionId } from '@concierge/tenant';
import { TestRedis } from '@concierge/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

const at = '2026-11-20T12:00:00.000Z';
const failedTurn = `t_${'a'.repeat(32)}`;
const doneTurn = `t_${'b'.repeat(32)}`;
const sessionId = deriveSessionId('cs', 'web', 'jo@example.com');

function record(id: string, changes: Partial<TurnRecord>): TurnRecord {
  return {
    id,
    status: 'done',
    origin: 'api',
    acceptedAt: at,
    startedAt: at,
    firstTextAt: null,
    endedAt: at,
    attempts: 1,
    usage: { inputTokens: 10, outputTokens: 2 },
    models: [],
    finishReason: 'stop',
    error: null,
    steps: [{ kind: 'model', name: 'demo/demo', startedAt: at, durationMs: 12, isError: false }],
    requestHash: 'h',
    keyId: 'k_1',
    ...changes,
  };
}

/** One contact's conversation, with a turn that failed and one that did not. */
const session: Session = {
  version: 1,
  id: sessionId,
  agent: 'cs',
  channel: 'web',
  sender: 'jo@example.com',
  revision: 1,
  createdAt: at,
  updatedAt: at,
  title: 'Where is my parcel?',
  messageCount: 2,
  summary: null,
  messages: [
    { id: 'm1', turnId: doneTurn, at, role: 'user', text: 'Hello', sent: '[now] Hello' },
    { id: 'm2', turnId: failedTurn, at, role: 'user', text: 'Where is my parcel?', sent: '[now] Where is my parcel?' },
  ],
  turns: [
    record(doneTurn, {
      models: [{ model: 'test/large', calls: 2, inputTokens: 1000, cachedInputTokens: 400, outputTokens: 50, costUsd: 0.25 }],
    }),
    record(failedTurn, {
      status: 'failed',
      finishReason: null,
      error: { code: 'provider_error', message: 'The model provider failed' },
      failedModel: 'openai/gpt-x',
    }),
  ],
  contextTokens: null,
};

const Retried = z.strictObject({ turnId: z.string(), contact_id: z.string(), retryOf: z.string() });

let redis: TestRedis;
let concierge: CommandLine;
beforeAll(async () => {
  redis = await TestRedis.start();
});
afterAll(async () => await redis[Symbol.asyncDispose]());
beforeEach(async () => {
  await redis.flush();
  concierge = await CommandLine.over({ REDIS_URL: redis.url });
  await concierge.json('tenant', 'create', 'acme');
  await concierge.withScope('acme', async (scope) => {
    await scope.sessions.publish(session);
    await scope.index.putSession(session);
  });
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

const listed = async (...more: string[]): Promise<string[]> =>
  z
    .array(TurnView)
    .parse(await concierge.json('turn', 'list', 'acme', ...more))
    .map(({ id }) => id);

describe('concierge turn', () => {
  it('lists turns, all or those of one state', async () => {
    expect((await listed()).toSorted()).toEqual([failedTurn, doneTurn]);
    expect(await listed('--status', 'failed')).toEqual([failedTurn]);
    expect(await listed('--limit', '1')).toHaveLength(1);
  });

  it('lists those of all tenants, by code of the error, state and id', async () => {
    await concierge.json('tenant', 'create', 'another');
    await concierge.withScope('another', async (scope) => {
      await scope.sessions.publish(session);
      await scope.index.putSession(session);
    });
    const all = async (...more: string[]): Promise<string[][]> =>
      z
        .array(OperatedTurn)
        .parse(await concierge.json('turn', 'list', ...more))
        .map(({ tenantId, id }) => [tenantId, id]);
    expect(await all('--code', 'provider_error')).toEqual([
      ['acme', failedTurn],
      ['another', failedTurn],
    ]);
    expect(await all('--status', 'done', '--limit', '1')).toEqual([['acme', doneTurn]]);
    expect(await all('--id', sessionId, '--limit', '3')).toHaveLength(3);
    expect(await listed('--id', doneTurn)).toEqual([doneTurn]);
    const { out } = await concierge.run('turn', 'list', '--id', failedTurn);
    expect(out).toMatch(/^another +t_a+ +failed +provider_error/mu);
  });

  it('shows one turn with its steps', async () => {
    expect(TurnView.parse(await concierge.json('turn', 'show', 'acme', failedTurn))).toMatchObject({
      id: failedTurn,
      status: 'failed',
      contact_id: sessionId,
    });
    const { out } = await concierge.run('turn', 'show', 'acme', failedTurn);
    expect(out).toContain('provider_error: The model provider failed');
    expect(out).toMatch(/^ +0 ms +12 ms +model demo\/demo$/mu);
  });

  it('accepts once more what a failed turn had asked, in the same session and with no more rights, and only once', async () => {
    const retried = Retried.parse(await concierge.json('turn', 'retry', 'acme', failedTurn));
    expect(retried).toMatchObject({ contact_id: sessionId, retryOf: failedTurn });
    expect(await concierge.json('turn', 'retry', 'acme', failedTurn)).toEqual(retried);
    await concierge.withScope('acme', async (scope) => {
      expect(await scope.inbox.turnIds()).toEqual([retried.turnId]);
      expect(AcceptedTurn.parse(await scope.inbox.read(retried.turnId))).toMatchObject({
        text: 'Where is my parcel?',
        agent: 'cs',
        authority: 'cs',
        sender: 'jo@example.com',
        sessionId,
      });
    });
    expect(await listed('--status', 'waiting')).toEqual([retried.turnId]);
  });

  it('does not try a turn again that was answered', async () => {
    const { code, err } = await concierge.run('turn', 'retry', 'acme', doneTurn);
    expect(code).toBe(1);
    expect(err).toContain('only a failed or cancelled turn');
  });

  it('cancels a turn that waits', async () => {
    const { turnId } = Retried.parse(await concierge.json('turn', 'retry', 'acme', failedTurn));
    expect(await concierge.json('turn', 'cancel', 'acme', turnId)).toEqual({ turnId, status: 'waiting', cancelling: true });
    await concierge.withScope('acme', async (scope) => expect(await scope.inbox.isCancelled(turnId)).toBe(true));
    expect(await concierge.json('turn', 'cancel', 'acme', doneTurn)).toMatchObject({ cancelling: false });
    expect((await concierge.run('turn', 'cancel', 'acme', turnId, '--reason', 'x'.repeat(201))).err).toContain('--reason');
    await concierge.run('turn', 'cancel', 'acme', turnId, '--reason', 'Asked twice.');
    expect((await concierge.run('audit', 'acme')).out).toMatch(/turn\.cancel +acme .*Asked twice\./u);
  });

  it('cancels all turns of a tenant after a count, with a reason that goes on record', async () => {
    const { turnId } = Retried.parse(await concierge.json('turn', 'retry', 'acme', failedTurn));
    const count = { tenantId: 'acme', waiting: 1, running: 0 };
    expect(await concierge.json('turn', 'cancel-all', 'acme')).toEqual({ ...count, dryRun: true });
    expect((await concierge.run('turn', 'cancel-all', 'acme', '--yes')).err).toContain('reason');
    await concierge.withScope('acme', async (scope) => expect(await scope.inbox.isCancelled(turnId)).toBe(false));
    const { out } = await concierge.run('turn', 'cancel-all', 'acme', '--yes', '--reason', 'They asked for it.');
    expect(out).toBe('1 waiting and 0 running turns of acme are asked to stop.\n');
    await concierge.withScope('acme', async (scope) => expect(await scope.inbox.isCancelled(turnId)).toBe(true));
    expect(await concierge.json('turn', 'cancel-all', 'acme')).toEqual({ ...count, dryRun: true, waiting: 0 });
    expect((await concierge.run('audit', 'acme')).out).toMatch(/turn\.cancel-all +acme +1 turn: They asked for it\./u);
  });
});

describe('concierge failures', () => {
  const since = ['--since', '2026-11-01T00:00:00Z'];

  it('lists failed turns of all tenants by cause', async () => {
    expect(await concierge.json('failures', ...since)).toMatchObject([
      {
        code: 'provider_error',
        provider: 'openai',
        model: 'openai/gpt-x',
        turns: 1,
        tenants: [{ tenantId: 'acme', turns: 1 }],
        example: { turnId: failedTurn },
      },
    ]);
    const { out } = await concierge.run('failures', 'list', ...since, '--code', 'provider_error');
    expect(out).toMatch(
      new RegExp(String.raw`^1 +1 +provider_error +openai/gpt-x .* acme ${failedTurn} +The model provider failed$`, 'mu'),
    );
    expect((await concierge.run('failures', ...since, '--code', 'turn_timeout')).out).toBe('No turn failed.\n');
    expect((await concierge.run('failures', '--since', 'lately')).err).toContain('neither a duration');
  });

  it('says which would be tried again, and tries them again once, on record', async () => {
    const { out } = await concierge.run('failures', 'retry', ...since);
    expect(out).toContain('1 turns would be accepted again');
    expect(out).toMatch(/^acme +1/mu);
    expect(await listed('--status', 'waiting')).toEqual([]);
    const again = ['failures', 'retry', ...since, '--yes', '--per-minute', '60000'];
    expect(await concierge.json(...again)).toMatchObject({ dryRun: false, stopped: false, turns: 1, tenants: { acme: 1 }, skipped: {} });
    expect(await concierge.json(...again)).toMatchObject({ turns: 0, tenants: {}, skipped: { retried: 1 } });
    expect(await listed('--status', 'waiting')).toHaveLength(1);
    expect((await concierge.run('audit', 'acme')).out).toMatch(new RegExp(String.raw`turn\.retry +acme +${failedTurn}`, 'u'));
  });
});

describe('concierge handoff', () => {
  it('takes a conversation over, lists who waits, answers in it, and gives it back', async () => {
    expect(await concierge.json('handoff', 'list', 'acme')).toEqual([]);
    expect((await concierge.run('handoff', 'answer', 'acme', sessionId, 'Too early.')).err).toContain('take it over first');
    const taken = await concierge.json('handoff', 'take', 'acme', sessionId, '--reason', 'Mine.', '--hours', '2');
    expect(taken).toMatchObject({ state: 'paused', reason: 'Mine.', requestedBy: { kind: 'operator' } });
    expect((await concierge.run('handoff', 'take', 'acme', sessionId)).out).toContain('was handed over already');
    expect(await concierge.json('handoff', 'list', 'acme')).toMatchObject([
      { sessionId, title: 'Where is my parcel?', lastMessage: { from: 'contact', text: 'Where is my parcel?' } },
    ]);
    expect((await concierge.run('handoff', 'list', 'acme')).out).toContain('contact: Where is my parcel?');
    const { turnId } = PersonMessageReceipt.parse(await concierge.json('handoff', 'answer', 'acme', sessionId, 'It comes on Monday.'));
    await concierge.withScope('acme', async (scope) =>
      expect(await scope.inbox.read(turnId)).toMatchObject({
        origin: 'person',
        by: { kind: 'operator' },
        text: 'It comes on Monday.',
        sessionId,
      }),
    );
    expect(await concierge.json('handoff', 'resume', 'acme', sessionId)).toMatchObject({ isPaused: false, handoff: { state: 'resumed' } });
    expect((await concierge.run('handoff', 'resume', 'acme', sessionId)).out).toContain('has');
  });

  it.each([
    [['take', 'acme', '0'.repeat(32)], 'no such session'],
    [['take', 'acme', sessionId, '--hours', 'many'], '--hours must be a number'],
    [['take', 'acme', sessionId, '--hours', '100000'], 'may last up to'],
    [['take', 'acme', sessionId, '--reason', ''], '--reason'],
    [['answer', 'acme', sessionId, ''], 'An answer has'],
  ])('refuses %j', async (args, reason) => {
    const { code, err } = await concierge.run('handoff', ...args);
    expect(code).toBe(1);
    expect(err).toContain(reason);
  });
});

describe('concierge usage', () => {
  const period = ['--from', '2026-11-20', '--to', '2026-11-20'];
  const used = { turns: 1, calls: 2, inputTokens: 1000, cachedInputTokens: 400, outputTokens: 50, costUsd: 0.25 };

  it('is the sum of each tenant, also of those that used nothing', async () => {
    await concierge.json('tenant', 'create', 'quiet');
    const { items } = z.object({ items: z.array(z.unknown()) }).parse(await concierge.json('usage', ...period));
    const nothing = { turns: 0, calls: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, costUsd: null };
    expect(items).toEqual([
      { tenantId: 'acme', ...used },
      { tenantId: 'quiet', ...nothing },
    ]);
    expect((await concierge.run('usage', ...period)).out).toMatch(/^acme +1 +2 +1000 +400 +50 +\$0\.2500$/mu);
  });

  it('is shown in rows of one tenant, by day or what else is asked for', async () => {
    const report = await concierge.json('usage', 'acme', ...period);
    expect(report).toMatchObject({ items: [{ day: '2026-11-20', model: 'test/large', ...used }], total: used });
    const { out } = await concierge.run('usage', 'acme', '--by', 'model', ...period);
    expect(out).toMatch(/^MODEL +TURNS [^]*^test\/large +1 [^]*^all +1 /mu);
    expect((await concierge.run('usage', 'acme', '--from', '2026-11-21', '--to', '2026-11-21')).out).toContain('No usage');
  });

  it('refuses days that are none, and a period that ends before it begins', async () => {
    expect(await concierge.run('usage', '--from', 'yesterday')).toMatchObject({ code: 1, err: expect.stringContaining('must be a day') });
    const backwards = await concierge.run('usage', 'acme', '--from', '2026-11-21', '--to', '2026-11-20');
    expect(backwards).toMatchObject({ code: 1, err: expect.stringContaining('must not be after') });
  });
});
