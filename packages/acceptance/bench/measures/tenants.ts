import { setTimeout as wait } from 'node:timers/promises';
import { DAY_MS } from '@concierge/contract';
import { eventually, System, type ServiceProcess } from '@concierge/testing';
import { sharedEnvironment } from '../config.ts';
import { collectGarbage, cpuSeconds, peakResidentBytes, residentBytes } from '../process-figures.ts';
import { BenchModel, paces } from '../model.ts';
import { absoluteRow, type Row } from '../row.ts';

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;
const WARM_UP_TENANTS = 200;
const TENANTS = 10_000;
const AT_ONCE = 64;
const ATTENDED_TIMEOUT_MS = 600_000;
const MAX_KIBIBYTES = 64;
const MAX_READY_S = 8;
const MAX_CRON_MEBIBYTES = 300;
/** After so long nothing of the load is left to be done. */
const REST_MS = 20_000;
const RESTING_MS = 30_000;
/** A sorted set of schedules, by the time of their next look. */
const SCHEDULES_KEY = 'concierge:{q0}:due:schedules';
const tenants = TENANTS.toLocaleString('en');
const farOff = { name: 'Next year', message: 'What is due?', schedule: { at: new Date(Date.now() + 300 * DAY_MS).toISOString() } };

/**
 * What a tenant that was opened and is idle costs each service: one request at the gateway, one turn at the worker, one
 * schedule at cron. Then what all of them cost while nothing happens, and a cron that starts over them.
 */
export async function measureTenants(): Promise<Row[]> {
  await using model = await BenchModel.start();
  await model.setPace(paces.zeroDelay);
  const env = { ...sharedEnvironment, NODE_ENV: 'production', NODE_OPTIONS: '--inspect-port=0' };
  await using system = await System.start({ modelUrl: model.url, crons: 1, redisSyncs: true, env });
  const [cron] = system.crons;
  await openTenants(system, 0, WARM_UP_TENANTS);
  await attended(system, WARM_UP_TENANTS);
  const before = await settledBytes(system);
  // It would look through all of them again and again while they are made, and rest twenty times as long after each
  // look.
  await cron?.signal('SIGSTOP');
  await openTenants(system, WARM_UP_TENANTS, TENANTS + WARM_UP_TENANTS);
  await cron?.signal('SIGCONT');
  await attended(system, TENANTS + WARM_UP_TENANTS);
  const after = await settledBytes(system);
  const memory = [...after].map(([service, bytes]) => {
    const each = (bytes - (before.get(service) ?? 0)) / TENANTS / KIBIBYTE;
    const measure = `${service} memory per opened idle tenant, ${tenants} open`;
    return absoluteRow({ measure, unit: 'KiB', product: each }, { atMost: MAX_KIBIBYTES });
  });
  return [...memory, ...(await measureRest(system)), ...(await measureCronStart(system))];
}

/** Processor time while nothing happens. */
async function measureRest(system: System): Promise<Row[]> {
  await wait(REST_MS);
  const services = system.services.map(({ name, pid = 0 }) => ({ name, pid, before: cpuSeconds(pid) }));
  await wait(RESTING_MS);
  return services.map(({ name, pid, before }) => {
    const product = ((cpuSeconds(pid) - before) / RESTING_MS) * 1e6;
    return absoluteRow({ measure: `${name} at rest, ${tenants} idle tenants`, unit: 'ms of CPU per s', product }, null);
  });
}

/** A cron that starts over all of them, as after an update, until it has looked at each schedule. */
async function measureCronStart(system: System): Promise<Row[]> {
  const [cron] = system.crons;
  if (cron === undefined) throw new Error('there is no cron');
  await cron.terminate();
  const redis = system.redis.client();
  await redis.del(SCHEDULES_KEY);
  redis.disconnect();
  const beganMs = performance.now();
  cron.start();
  await attended(system, TENANTS + WARM_UP_TENANTS);
  const seconds = (performance.now() - beganMs) / 1000;
  const peak = peakResidentBytes(cron.pid ?? 0) / MEBIBYTE;
  return [
    absoluteRow({ measure: `cron starts over ${tenants} tenants`, unit: 's', product: seconds }, { atMost: MAX_READY_S }),
    absoluteRow({ measure: 'its memory at most', unit: 'MiB', product: peak }, { atMost: MAX_CRON_MEBIBYTES }),
  ];
}

/** Makes tenants with a schedule each, and has each say one thing to its agent. */
async function openTenants(system: System, from: number, to: number): Promise<void> {
  for (let first = from; first < to; first += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, to - first) }, (_, place) => first + place);
    await Promise.all(numbers.map(async (number) => openTenant(system, `idle-${String(number)}`)));
  }
}

/** Waits until cron has looked at so many schedules. */
async function attended(system: System, count: number): Promise<void> {
  const redis = system.redis.client();
  // A schedule that cron has looked at is planned for its time.
  const planned = async (): Promise<number> => redis.zcount(SCHEDULES_KEY, Date.now() + DAY_MS, '+inf');
  try {
    await eventually(async () => (await planned()) >= count, { timeoutMs: ATTENDED_TIMEOUT_MS, everyMs: 100 });
  } finally {
    redis.disconnect();
  }
}

async function openTenant(system: System, tenantId: string): Promise<void> {
  const { admin } = await system.createTenant(tenantId);
  await (await system.scope(tenantId)).schedules.create(farOff, { by: { kind: 'operator' }, authority: 'admin' });
  const headers = { 'x-api-key': admin, 'content-type': 'application/json', accept: 'application/json' };
  const answer = await fetch(`${system.url}/api/admin`, { method: 'POST', headers, body: '{"message":"Good morning!"}' });
  if (!answer.ok) throw new Error(`the turn of ${tenantId} was answered with ${String(answer.status)}: ${await answer.text()}`);
  await answer.arrayBuffer();
}

async function settledBytes(system: System): Promise<Map<string, number>> {
  const bytes = new Map<string, number>();
  for (const [name, [service]] of [
    ['gateway', system.gateways],
    ['worker', system.workers],
    ['cron', system.crons],
  ] as const) {
    bytes.set(name, await measureSettledBytes(service, system));
  }
  return bytes;
}

async function measureSettledBytes(service: ServiceProcess | undefined, system: System): Promise<number> {
  if (service?.pid === undefined) throw new Error('a service is not running');
  await collectGarbage(service, async () => system.readServiceLog(service.name));
  return residentBytes(service.pid);
}
