import { describe, expect, it } from '@jest/globals';
import { listSeries } from '@concierge/runtime';
import { figures, type Figure, type FigureService } from '@concierge/runtime/figures';
import {
  botError,
  callTools,
  eventually,
  FakeTelegram,
  freePort,
  hang,
  onePixelPng,
  say,
  startScriptedSystem,
  status,
  WebhookReceiver,
  type ScriptedModel,
  type System,
  type TenantKeys,
} from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { TenantScope } from '@concierge/tenant';
import { z } from 'zod';

/**
 * What a run cannot bring about in reason. Each is moved by a test of its own: the worker's figures
 * (services/worker/src/metrics-server.test.ts), the gateway's (services/gateway/src/metrics.test.ts), a process's
 * (packages/runtime/src/metrics/process-figures.test.ts), schedules (services/cron/test/schedules.int.test.ts).
 */
const rare = new Set([
  'concierge_compactions_total',
  'concierge_event_loop_stall_seconds',
  'concierge_event_stream_clients_dropped_total',
  'concierge_fenced_writes_total',
  'concierge_index_errors_total',
  'concierge_model_cost_usd_total',
  'concierge_sandbox_starts_total',
  'concierge_schedule_failing_total',
]);

const telegramBot = { botToken: '7000:telegram-token', secretToken: 'hook-secret' };
const ANN = 4242;
const all: readonly (readonly [string, Figure])[] = Object.entries(figures);

let system: System;
let model: ScriptedModel;
let telegram: FakeTelegram;
let receiver: WebhookReceiver;
let tenant: TenantKeys;
let scope: TenantScope;
let urls: Record<FigureService, string>;
let opened: AsyncDisposableStack;
const clients = new AbortController();

setUpOnce(async (stack) => {
  stack.defer(() => {
    clients.abort();
  });
  telegram = stack.use(await new FakeTelegram(telegramBot).start());
  receiver = stack.use(await WebhookReceiver.start());
  opened = stack;
});

/** Within the test: on a busy machine the start of three services takes longer than a hook may. */
async function startSystem(stack: AsyncDisposableStack): Promise<void> {
  const [workerPort, cronPort] = [await freePort(), await freePort()];
  const started = await startScriptedSystem(stack, {
    crons: 1,
    fallbackModels: ['second'],
    env: { TELEGRAM_API_URL: telegram.url, OUTBOUND_ALLOW: receiver.place },
    envFor: (name) => {
      if (name === 'worker-0') return { METRICS_PORT: String(workerPort) };
      return name === 'cron-0' ? { METRICS_PORT: String(cronPort) } : {};
    },
  });
  ({ system, model } = started);
  urls = {
    gateway: `${system.url}/metrics`,
    worker: `http://127.0.0.1:${String(workerPort)}/metrics`,
    cron: `http://127.0.0.1:${String(cronPort)}/metrics`,
  };
  tenant = await system.createTenant('figures');
  scope = await system.scope(tenant.tenantId);
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** None of a service that does not listen now. */
async function scrape(service: FigureService): Promise<Sample[]> {
  const response = await fetch(urls[service]).catch(() => undefined);
  const text = response?.ok === true ? await response.text() : '';
  return text.split('\n').flatMap((line) => {
    const found = /^(?<name>concierge_\w+)(?:\{(?<labels>[^}]*)\})? (?<value>\S+)$/u.exec(line)?.groups;
    if (found === undefined) return [];
    const labels = Object.fromEntries([...(found['labels'] ?? '').matchAll(/(\w+)="([^"]*)"/gu)].map(([, name, value]) => [name, value]));
    return [{ name: found['name'] ?? '', labels, value: Number(found['value']) }];
  });
}

/** The declared figure behind a sample, and whether the sample shows that something was counted. */
const toFigureName = (name: string): string => (name in figures ? name : name.replace(/_(?:bucket|sum|count)$/u, ''));

const moved = new Set<string>();

/** Notes every figure that is not zero now. */
async function look(): Promise<void> {
  for (const service of ['gateway', 'worker', 'cron'] as const)
    for (const { name, value } of await scrape(service)) if (value > 0) moved.add(toFigureName(name));
}

/** Resolves when these have moved. */
async function haveMoved(...names: readonly string[]): Promise<void> {
  await eventually(
    async () => {
      await look();
      return names.every((name) => moved.has(name));
    },
    { timeoutMs: 90_000, everyMs: 200 },
  );
}

async function post(path: string, body: object, key = tenant.admin): Promise<Response> {
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
  return fetch(`${system.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal: clients.signal });
}

/** Asks and waits for the whole answer. */
async function ask(agent: 'admin' | 'cs', message: string, sender?: string): Promise<string> {
  const response = await post(`/api/${agent}`, { message, ...(sender !== undefined && { sender }) });
  return response.text();
}

async function writeOnTelegram(updateId: number, text: string): Promise<number> {
  const from = { id: ANN, is_bot: false, first_name: 'Ann' };
  const message = { message_id: updateId, from, chat: { id: ANN, type: 'private' }, date: 1_795_000_000, text };
  const response = await fetch(`${system.url}/webhook/telegram/${tenant.tenantId}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Telegram-Bot-Api-Secret-Token': telegramBot.secretToken },
    body: JSON.stringify({ update_id: updateId, message }),
  });
  return response.status;
}

describe('the figures of the services', () => {
  it('are there from the start with every series, as declared, and move in a run that has everything in it', async () => {
    await startSystem(opened);
    await assertDeclared();
    await moveAll();
    const still = all.map(([name]) => name).filter((name) => !moved.has(name) && !rare.has(name));
    expect(still).toEqual([]);
  }, 420_000);
});

async function assertDeclared(): Promise<void> {
  for (const service of ['gateway', 'worker', 'cron'] as const) {
    const samples = await eventually(
      async () => {
        const found = await scrape(service);
        return found.length === 0 ? undefined : found;
      },
      { timeoutMs: 90_000 },
    );
    const own = all.filter(([, { services }]) => services.includes(service));
    const served = new Set(samples.map(({ name }) => toFigureName(name)));
    const atFirstEvent = own.filter(([, { labels = {} }]) => Object.values(labels).includes(null)).map(([name]) => name);
    expect([...served].filter((name) => !own.some(([declared]) => declared === name))).toEqual([]);
    expect(own.map(([name]) => name).filter((name) => !served.has(name) && !atFirstEvent.includes(name))).toEqual([]);
    for (const [name, figure] of own.filter(([declared]) => !atFirstEvent.includes(declared))) {
      const counted = samples.filter((sample) => sample.name === (figure.kind === 'histogram' ? `${name}_count` : name));
      expect({ name, series: counted.length }).toEqual({ name, series: listSeries(figure).length });
    }
    expect(samples.filter(({ name, labels }) => !isDeclared(figures, toFigureName(name), labels))).toEqual([]);
  }
}

async function moveAll(): Promise<void> {
  model.when('hold on', [hang()], [say('I am back.')]);
  void ask('cs', 'hold on', 'ann');
  await haveMoved('concierge_turns_running', 'concierge_event_streams_open', 'concierge_turn_wait_seconds');
  void ask('cs', 'and then?', 'ann');
  await haveMoved('concierge_waiting_turns', 'concierge_oldest_waiting_turn_age_seconds', 'concierge_workers');
  await system.workers[0]?.kill();
  system.workers[0]?.start();
  await haveMoved('concierge_turn_restarts_total', 'concierge_turns_total', 'concierge_turn_lane_seconds');

  await useModels();
  await useChannel();
  await useSchedule();

  await system.redis.kill();
  await haveMoved('concierge_redis_errors_total');
  await system.redis.start();
  await haveMoved('concierge_reconciler_repairs_total');
  await haveMoved(...all.map(([name]) => name).filter((name) => !rare.has(name)));
}

async function useModels(): Promise<void> {
  model.when('use a tool', [callTools([{ name: 'status', args: {} }])], [say('done')]);
  model.when('stumble', [status(500)], [say('up again')]);
  model.when('be refused', [status(401)], [status(401)], [say('by the second')]);
  await ask('admin', 'use a tool');
  await ask('admin', 'stumble');
  await ask('admin', 'be refused');
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(onePixelPng)], { type: 'image/png' }), 'one.png');
  await fetch(`${system.url}/api/uploads`, { method: 'POST', headers: { 'X-API-Key': tenant.admin }, body: form });
  await haveMoved(
    'concierge_tool_calls_total',
    'concierge_tool_seconds',
    'concierge_model_retries_total',
    'concierge_model_fallbacks_total',
    'concierge_uploads_total',
  );
}

async function useChannel(): Promise<void> {
  const made = await post('/api/event-endpoints', { url: `http://${receiver.place}/events`, types: null });
  expect({ status: made.status, text: await made.text() }).toMatchObject({ status: 201 });
  await scope.channels.connect('channel_c', telegramBot);
  expect(await writeOnTelegram(1, 'Hello')).toBe(200);
  await haveMoved('concierge_deliveries_total', 'concierge_events_total', 'concierge_webhook_messages_total');
  telegram.failSends(botError(400, 'Bad Request: chat not found'));
  expect(await writeOnTelegram(2, 'Are you there?')).toBe(200);
  await haveMoved('concierge_channel_failures_total', 'concierge_dead_letters_total');
}

async function useSchedule(): Promise<void> {
  // On a machine that stood still the time is over when it arrives, and refused.
  const made = await eventually(async () => {
    const at = new Date(Date.now() + 3000).toISOString();
    const answer = await post('/api/cron', { name: 'Report', message: 'Report.', schedule: { at } });
    return answer.ok ? answer : undefined;
  });
  expect(z.looseObject({ id: z.string() }).safeParse(await made.json()).success).toBe(true);
  await haveMoved('concierge_schedule_runs_total', 'concierge_schedule_lag_seconds');
}

function isDeclared(declared: Readonly<Record<string, Figure>>, name: string, labels: Readonly<Record<string, string>>): boolean {
  const known = declared[name]?.labels ?? {};
  return Object.entries(labels).every(([label, value]) => {
    if (label === 'service' || label === 'le') return true;
    const values = known[label];
    return values !== undefined && (values === null || values.includes(value));
  });
}
