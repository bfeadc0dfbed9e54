import { createLog } from '@concierge/runtime';
import { canRunPostgres, eventually, startPostgres, System, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, ProcessAnnouncement, type ProcessFacts } from '@concierge/turn';
import { describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

// Each look asks everything that there is to ask, and one of them waits for a worker to start.
jest.setTimeout(180_000);

const log = createLog({ service: 'test', level: 'silent' });
const Report = z.object({ ok: z.boolean(), checks: z.array(z.object({ name: z.string(), status: z.string(), detail: z.string() })) });
type Check = z.infer<typeof Report>['checks'][number];

async function examine(concierge: CommandLine): Promise<{ code: number; ok: boolean; checks: Readonly<Record<string, Check>> }> {
  const { code, out } = await concierge.run('doctor', '--json');
  const { ok, checks } = Report.parse(JSON.parse(out));
  return { code, ok, checks: Object.fromEntries(checks.map((check) => [check.name, check])) };
}

/** A command line with files of its own over this Redis, as in a container that knows nothing of the workers'. */
async function commandLine(stack: AsyncDisposableStack, env: NodeJS.ProcessEnv): Promise<CommandLine> {
  return stack.use(await CommandLine.over(env));
}

describe('concierge doctor', () => {
  let stack: AsyncDisposableStack;
  let redis: TestRedis;
  let concierge: CommandLine;
  setUpEach(async (opened) => {
    stack = opened;
    redis = stack.use(await TestRedis.start());
    concierge = await commandLine(stack, { REDIS_URL: redis.url, SANDBOX: 'off' });
  });

  async function announce(service: string, databasePool: number, more: { readonly sendsEmail?: boolean } = {}): Promise<void> {
    const client = stack.adopt(redis.client(), (opened) => {
      opened.disconnect();
    });
    await stack
      .adopt(new ProcessAnnouncement({ redis: client, service, databasePool, ...more, log }), async (opened) => opened.stop())
      .start();
  }

  /** As a process of another version, or of another machine, would announce itself; it goes on doing so. */
  async function announceElsewhere(facts: Partial<ProcessFacts>): Promise<void> {
    const all = { service: 'cron', version: '0.1.0', build: 'source', host: 'far', pid: 7, databasePool: 0, clockAheadMs: 0, ...facts };
    const client = redis.client();
    await client.zadd(keyOf.processes, Date.now() + 3_600_000, 'elsewhere');
    await client.hset(keyOf.processFacts, 'elsewhere', JSON.stringify({ ...all, more: 'than this version knows' }));
    client.disconnect();
  }

  it('reports for each part whether it works, and fails when accepted turns would wait', async () => {
    const { code, ok, checks } = await examine(concierge);
    expect(Object.fromEntries(Object.entries(checks).map(([name, { status }]) => [name, status]))).toMatchObject({
      node: 'ok',
      data: 'ok',
      redis: 'ok',
      clock: 'ok',
      index: 'ok',
      connections: 'ok',
      workers: 'failed',
      providers: 'warning',
      versions: 'ok',
    });
    expect({ code, ok }).toEqual({ code: 1, ok: false });
  });

  it.each([
    [{ SANDBOX: 'off' }, /: switched off: bash and exec answer with an error$/u],
    [
      { SANDBOX: 'docker', SANDBOX_IMAGE: 'concierge-no-such-image' },
      /: (?:the Docker engine has no image concierge-no-such-image|no Docker)/u,
    ],
    [{ SANDBOX_RUNTIME: 'no-such-runtime' }, /: (?:the Docker engine has no (?:runtime no-such-runtime|image)|no Docker)/u],
  ])('says what would keep agents from running commands where no worker can be asked: %j', async (given, detail) => {
    const { sandbox } = (await examine(await commandLine(stack, { REDIS_URL: 'unix:/nowhere/redis.sock', ...given }))).checks;
    expect(sandbox).toMatchObject({ status: 'warning', detail: expect.stringMatching(detail) });
    expect(sandbox?.detail).toMatch(/^Redis cannot be asked; as this command is configured: /u);
  });

  it('goes on when Redis is not there, and says once why it is not', async () => {
    const { checks } = await examine(await commandLine(stack, { REDIS_URL: 'unix:/nowhere/redis.sock' }));
    expect(checks['redis']?.status).toBe('failed');
    expect(checks['redis']?.detail).toMatch(/^Redis does not answer: is Concierge running\? REDIS_URL: .*ENOENT/u);
    expect(checks).toMatchObject({ index: { status: 'ok' }, connections: { status: 'ok' } });
    const unknown = { status: 'warning', detail: 'Redis cannot be asked' };
    expect(checks).toMatchObject({ clock: unknown, workers: unknown, versions: unknown });
    for (const name of ['providers', 'sandbox']) expect(checks[name]?.detail).toMatch(/^Redis cannot be asked; as this command/u);
  });

  it('asks once for what workers and processes say of themselves, however many lines show it', async () => {
    const watching = stack.adopt(redis.client(), (opened) => opened.disconnect());
    const monitor = stack.adopt(await watching.monitor(), (opened) => opened.disconnect());
    const asked: string[] = [];
    monitor.on('monitor', (_time: string, args: readonly string[]) => asked.push(args.join(' ')));
    const { checks } = await examine(concierge);
    expect(checks['providers']?.detail).toMatch(/^no worker runs that could be asked; as this command is configured: /u);
    // What was asked before this has been shown when this is.
    await watching.echo('looked');
    await eventually(() => asked.includes('echo looked'));
    for (const key of [keyOf.workers, keyOf.processes])
      expect(asked.filter((command) => command.startsWith(`zrangebyscore ${key} `))).toHaveLength(1);
  });

  it('names the versions that run beside each other', async () => {
    await announce('gateway', 0);
    await announce('gateway', 0);
    await announce('worker', 0);
    expect((await examine(concierge)).checks['versions']).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/: 2 gateway, 1 worker$/u),
    });
    await announceElsewhere({ version: '99.0.0' });
    const { versions } = (await examine(concierge)).checks;
    expect(versions).toMatchObject({ status: 'warning', detail: expect.stringContaining('99.0.0 (source): 1 cron') });
  });

  it('says whether owners get e-mails, as cron knows it', async () => {
    expect((await examine(concierge)).checks['email']).toMatchObject({ status: 'warning', detail: 'no cron runs that could be asked' });
    await announce('cron', 0, { sendsEmail: false });
    expect((await examine(concierge)).checks['email']).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^SMTP_URL is not set/u),
    });
    await announce('cron', 0, { sendsEmail: true });
    expect((await examine(concierge)).checks['email']).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^owners get e-mails/u),
    });
  });

  it('names the machine whose clock differs from that of Redis', async () => {
    await announceElsewhere({ clockAheadMs: -90_000 });
    expect((await examine(concierge)).checks['clock']).toMatchObject({
      status: 'warning',
      detail: 'cron on far is 90.0 s behind Redis’ clock',
    });
  });

  (canRunPostgres() ? describe : describe.skip)('over PostgreSQL', () => {
    it('compares the pools of all processes with the connections of PostgreSQL', async () => {
      const { url } = stack.use(await startPostgres());
      const withDatabase = await commandLine(stack, { REDIS_URL: redis.url, DATABASE_URL: url, SANDBOX: 'off' });
      await announce('gateway', 10);
      await announce('worker', 20);
      const { connections } = (await examine(withDatabase)).checks;
      expect(connections).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^2 processes may open 30 of \d+ connections/u) });
      await announce('worker', 1000);
      expect((await examine(withDatabase)).checks['connections']).toMatchObject({
        status: 'warning',
        detail: expect.stringMatching(
          /^3 processes may open 1030 connections to PostgreSQL, and \d+ are there \(max_connections 100, 3 reserved, /u,
        ),
      });
    });
  });
});

describe('concierge doctor beside a worker that runs', () => {
  it('says what it says of model and sandbox, and looks for neither itself', async () => {
    await using stack = new AsyncDisposableStack();
    const env = { SANDBOX: 'off' };
    const system = stack.use(await System.start({ modelUrl: 'http://127.0.0.1:1/v1', gateways: 0, env }));
    const here = { REDIS_URL: system.redis.url, PROVIDERS_FILE: '/nonexistent/providers.json', SANDBOX: 'docker' };
    const concierge = await commandLine(stack, { ...here, NODE_ENV: 'production' });
    // In one look: a worker of a machine that stands still is not alive in each.
    const look = async (): Promise<boolean> => {
      const { code, checks } = await examine(concierge);
      expect(checks).toMatchObject({
        workers: { status: 'ok', detail: '1 alive' },
        providers: { status: 'ok', detail: 'default test/scripted' },
        sandbox: { status: 'warning', detail: 'switched off by SANDBOX=off: bash and exec answer with an error' },
        versions: { status: 'ok', detail: expect.stringMatching(/: 1 worker$/u) },
      });
      expect(code).toBe(0);
      return true;
    };
    expect(await eventually(look, { timeoutMs: 150_000, everyMs: 500 })).toBe(true);
  });
});
