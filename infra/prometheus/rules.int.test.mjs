import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { findProgram } from '../start/commands.mjs';

const run = promisify(execFile);
const rules = join(root, 'infra', 'prometheus', 'alerts.yml');
const alerts = [...readFileSync(rules, 'utf8').matchAll(/^ +- alert: (\w+)$/gmu)].map(([, name]) => name);

const counter = (series, events = '1x30') => ({ series, values: `0x20 ${events}` });
const gauge = (series, values) => ({ series, values });
const present = [
  gauge('concierge_gateway_processes{service="gateway",instance="g:8000"}', '1x120'),
  gauge('concierge_turn_slots{service="worker",instance="w:9100"}', '32x120'),
  gauge('concierge_waiting_turns{service="cron",instance="c:9100",reason="no_worker"}', '0x120'),
];
const without = (name) => present.filter(({ series }) => !series.startsWith(name));
const gone = (series, value) => gauge(series, `${value}x20 stale`);

/** What happens, and the labels of the alert that it must raise. Counters are at zero for 20 minutes before. */
const events = {
  GatewayDown: [[...without('concierge_gateway'), gone('concierge_gateway_processes{service="gateway",instance="g:8000"}', 1)], {}],
  WorkerDown: [[...without('concierge_turn_slots'), gone('concierge_turn_slots{service="worker",instance="w:9100"}', 32)], {}],
  CronDown: [
    [...without('concierge_waiting'), gone('concierge_waiting_turns{service="cron",instance="c:9100",reason="no_worker"}', 0)],
    {},
  ],
  TargetDown: [[gauge('up{job="worker",instance="w:9100"}', '1x20 0x100')], { job: 'worker', instance: 'w:9100' }],
  EventLoopStalls: [
    [gauge('concierge_event_loop_stall_seconds{service="worker",instance="w:9100"}', '0x20 3x100')],
    { service: 'worker', instance: 'w:9100' },
  ],
  GatewayAnswersErrors: [
    [counter('concierge_http_answers_total{class="2xx"}', '10x30'), counter('concierge_http_answers_total{class="5xx"}', '9x30')],
    {},
  ],
  NoWorkerTakesTurns: [[gauge('concierge_waiting_turns{service="cron",instance="d:9100",reason="no_worker"}', '0x20 1x100')], {}],
  TurnsWaitForSlots: [[gauge('concierge_oldest_waiting_turn_age_seconds{reason="no_free_slot"}', '0x20 90x100')], {}],
  WaitingIsNotCounted: [[gauge('concierge_waiting_look_age_seconds{service="cron"}', '3x20 90x100')], {}],
  TurnsCrash: [[counter('concierge_turns_total{agent="cs",channel="web",outcome="turn_crashed"}')], {}],
  TurnsFail: [
    [
      counter('concierge_turns_total{agent="cs",channel="web",outcome="stop"}', '5x30'),
      counter('concierge_turns_total{agent="cs",channel="web",outcome="provider_error"}', '4x30'),
    ],
    {},
  ],
  TurnsWereTakenOver: [[counter('concierge_fenced_writes_total{instance="w:9100"}')], { instance: 'w:9100' }],
  SandboxesFail: [[counter('concierge_sandbox_starts_total{outcome="failed"}')], {}],
  ModelIsRefused: [[counter('concierge_model_failures_total{model="openai/gpt",kind="rejected"}')], { model: 'openai/gpt' }],
  ModelProviderFails: [
    [
      counter('concierge_model_requests_total{provider="openai",status="2xx"}', '5x30'),
      counter('concierge_model_requests_total{provider="openai",status="5xx"}', '6x30'),
    ],
    { provider: 'openai' },
  ],
  ChannelRefusesCredentials: [
    [counter('concierge_channel_failures_total{channel="channel_a",class="binding_failed"}')],
    { channel: 'channel_a' },
  ],
  DeliveriesFail: [
    [
      counter('concierge_deliveries_total{channel="channel_a",state="sent"}', '4x30'),
      counter('concierge_deliveries_total{channel="channel_a",state="failed"}', '3x30'),
    ],
    { channel: 'channel_a' },
  ],
  WebhooksFail: [[counter('concierge_webhook_requests_total{channel="channel_c",outcome="failed"}')], { channel: 'channel_c' }],
  ScheduleKeepsFailing: [[counter('concierge_schedule_failing_total')], {}],
  SchedulesAreMissed: [[counter('concierge_schedule_runs_total{outcome="missed"}')], {}],
  SchedulesAreLate: [
    [counter('concierge_schedule_lag_seconds_count'), counter('concierge_schedule_lag_seconds_bucket{le="300"}', '0x30')],
    {},
  ],
  EventsAreGivenUp: [[counter('concierge_events_total{type="turn.failed",outcome="dead"}')], { type: 'turn.failed' }],
  RedisFails: [[counter('concierge_redis_errors_total{service="worker",kind="command"}')], { service: 'worker' }],
  RedisWasEmptied: [[counter('concierge_reconciler_repairs_total{kind="restore"}')], {}],
  RedisFillsUp: [
    [gauge('concierge_redis_memory_bytes{kind="used"}', '10x20 90x100'), gauge('concierge_redis_memory_bytes{kind="max"}', '100x120')],
    {},
  ],
  IndexFails: [[counter('concierge_index_errors_total{service="gateway"}')], { service: 'gateway' }],
  DiskFillsUp: [[gauge('concierge_disk_free_bytes', '50x20 9x100'), gauge('concierge_disk_size_bytes', '100x120')], {}],
  DiskIsFull: [[gauge('concierge_disk_free_bytes', '50x20 1x100'), gauge('concierge_disk_size_bytes', '100x120')], {}],
};

/** Small signs of life that must raise no alert: a failure among many on each of the figures that are shares. */
const quiet = [
  ...present,
  gauge('up{job="gateway",instance="g:8000"}', '1x120'),
  gauge('concierge_event_loop_stall_seconds{service="worker"}', '0x120'),
  gauge('concierge_oldest_waiting_turn_age_seconds{reason="own_session"}', '500x120'),
  gauge('concierge_waiting_look_age_seconds', '5x120'),
  gauge('concierge_redis_memory_bytes{kind="used"}', '500x120'),
  gauge('concierge_redis_memory_bytes{kind="max"}', '0x120'),
  gauge('concierge_disk_free_bytes', '60x120'),
  gauge('concierge_disk_size_bytes', '100x120'),
  counter('concierge_deliveries_total{channel="channel_a",state="failed"}', '1x100'),
  counter('concierge_turns_total{agent="cs",channel="web",outcome="provider_error"}', '1x100'),
  counter('concierge_model_requests_total{provider="openai",status="5xx"}', '1x100'),
  counter('concierge_http_answers_total{class="5xx"}', '1x100'),
];
const idle = Object.values(events)
  .flatMap(([series]) => series)
  .filter(({ values }) => values.startsWith('0x20 '))
  .filter(({ series }) => !/_seconds\{|waiting/u.test(series))
  .map(({ series }) => gauge(series, '0x120'));

let folder;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rules-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Rules run over series, a value a minute; YAML reads JSON. Rejects with what promtool found. */
async function testRules(name, tests) {
  const file = join(folder, `${name}.yml`);
  const test = tests.map((each) => ({ interval: '1m', ...each }));
  await writeFile(file, JSON.stringify({ rule_files: [rules], evaluation_interval: '1m', tests: test }));
  await run('promtool', ['test', 'rules', file]).catch((error) => {
    throw new Error(`${error.stdout ?? ''}${error.stderr ?? error.message}`, { cause: error });
  });
}

/** Annotations are compared, too; promtool fills the templates in. So only whether it fires is asked, by `ALERTS`. */
const firing = (name, at, labels) => ({
  expr: `count by (${['alertname', ...Object.keys(labels)].join(', ')}) (ALERTS{alertname="${name}", alertstate="firing"})`,
  eval_time: at,
  exp_samples: [{ labels: toSelector({ alertname: name, ...labels }), value: 1 }],
});
const silent = (name, at) => ({ expr: `ALERTS{alertname="${name}", alertstate="firing"}`, eval_time: at, exp_samples: [] });
const toSelector = (labels) =>
  `{${Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(', ')}}`;

const describeRules = findProgram('promtool') === null ? describe.skip : describe;

describeRules('the alert rules', () => {
  it('are rules that Prometheus takes', async () => {
    const { stdout } = await run('promtool', ['check', 'rules', rules]);
    expect(stdout).toContain(`${String(alerts.length)} rules found`);
  });

  it('each have an event here that raises them', () => {
    expect(Object.keys(events).toSorted()).toEqual(alerts.toSorted());
  });

  it('fire on their first event, and not before it', async () => {
    const tests = alerts.map((name) => {
      const [series, labels] = events[name];
      return { input_series: series, promql_expr_test: [silent(name, '20m'), firing(name, '24m', labels)] };
    });
    await expect(testRules('first-event', tests)).resolves.toBeUndefined();
  });

  it('are silent on an idle system, and for a single failure where only a share matters', async () => {
    const evaluations = ['30m', '60m', '110m'].flatMap((at) => alerts.map((name) => silent(name, at)));
    const told = testRules('idle', [
      { input_series: [...present, ...idle], promql_expr_test: evaluations },
      { input_series: quiet, promql_expr_test: evaluations },
    ]);
    await expect(told).resolves.toBeUndefined();
  });
});
