// One container after the other: a new one is started beside those that run, and when it is ready one old one leaves.
import { run, until } from '../start/commands.mjs';
import { exclusively } from '../sandbox/build-lock.mjs';
import { compose, inspect, listContainers, must, whyNoCompose } from './compose.mjs';

/** In this order; each has at least one container that serves at every moment. */
export const rolledServices = ['worker', 'cron', 'gateway', 'ui'];
/** What the balancer calls the containers of a service, for those behind it. */
const backends = { gateway: 'gateways', ui: 'consoles' };

const READY_TIMEOUT_MS = 5 * 60_000;
const SEEN_TIMEOUT_MS = 2 * 60_000;
const STOP_TIMEOUT_MS = 10 * 60_000;
const CHECK_TIMEOUT_MS = 60_000;
const RESTARTS_MAX = 3;

const seconds = (sinceMs) => `${((Date.now() - sinceMs) / 1000).toFixed(1)} s`;
const isRunning = ({ State }) => State.Running;

/** The containers of a service and what they should be: how many, of which image, with which settings. */
async function examine(service) {
  const { services } = JSON.parse(await compose(['config', '--format', 'json']));
  const { image, deploy } = services[service];
  const hash = (await compose(['config', '--hash', service])).trim().split(/\s+/u).at(-1);
  const [found] = await inspectImage(image);
  const isCurrent = ({ Image, Config }) => Image === found.Id && Config.Labels['com.docker.compose.config-hash'] === hash;
  const running = (await listContainers(service)).filter(isRunning);
  return { service, replicas: deploy?.replicas ?? 1, running, isCurrent };
}

async function inspectImage(image) {
  const { ok, stdout } = await run('docker', ['image', 'inspect', image]);
  if (!ok) throw new Error(`there is no image ${image}: build or pull it first (docker compose build, docker compose pull)`);
  return JSON.parse(stdout);
}

async function scale(service, count) {
  await compose(['up', '--detach', '--no-deps', '--no-recreate', '--no-build', '--scale', `${service}=${count}`, service]);
}

/** By its own check, which Docker runs four times a minute only: each run is a process in the container. */
async function isHealthy({ Id, Config, State }) {
  if (State.Health?.Status === 'healthy') return true;
  if (!State.Running || Config.Healthcheck?.Test[0] !== 'CMD') return false;
  return (await run('docker', ['exec', Id, ...Config.Healthcheck.Test.slice(1)], { timeoutMs: CHECK_TIMEOUT_MS })).ok;
}

/** @throws Error when it does not become healthy, with what it said last */
async function becomeHealthy({ Id, Name }) {
  let isCrashing = false;
  const isDecided = async () => {
    const [now] = await inspect([Id]);
    isCrashing = now.RestartCount > RESTARTS_MAX;
    return isCrashing || isHealthy(now);
  };
  if ((await until(isDecided, { timeoutMs: READY_TIMEOUT_MS, everyMs: 1000 })) && !isCrashing) return;
  const { stdout, stderr } = await run('docker', ['logs', '--tail', '5', Id]);
  throw new Error(`${Name.slice(1)} does not become healthy:\n${`${stdout}${stderr}`.trim()}`);
}

/** How many containers of a service the balancer sends requests to; undefined: there is no balancer here. */
async function countSeen(service) {
  const ask = ['exec', '-T', 'balancer', 'wget', '-q', '-O', '-', 'http://127.0.0.1:8002/'];
  const { ok, stdout } = await run('docker', ['compose', ...ask], { timeoutMs: 30_000 });
  return ok ? JSON.parse(stdout)[backends[service]] : undefined;
}

async function beSeen(service, count) {
  if (backends[service] === undefined || !(await listContainers('balancer')).some(isRunning)) return;
  const seen = await until(async () => ((await countSeen(service)) ?? 0) >= count, { timeoutMs: SEEN_TIMEOUT_MS, everyMs: 500 });
  if (!seen) throw new Error(`the balancer does not see ${count} containers of ${service}`);
}

async function stopAndRemove({ Id }) {
  // With the time that docker-compose.yml gives it.
  await must('docker', ['stop', Id], { timeoutMs: STOP_TIMEOUT_MS });
  await must('docker', ['rm', Id]);
}

/** A container more, ready for work. What does not become ready is removed again. */
async function addOne(service, running) {
  const before = new Set(running.map(({ Id }) => Id));
  await scale(service, before.size + 1);
  const added = (await listContainers(service)).filter(({ Id }) => !before.has(Id));
  try {
    for (const container of added) await becomeHealthy(container);
    await beSeen(service, before.size + added.length);
  } catch (error) {
    for (const { Id } of added) await run('docker', ['rm', '--force', Id]);
    throw error;
  }
}

async function rollService({ service, replicas, running, isCurrent }, { all, onStep }) {
  // What has ended would be started again by compose, in place of a new one.
  await compose(['rm', '--force', service]);
  const old = running.filter((container) => all || !isCurrent(container));
  if (old.length === 0) onStep(`${service}: nothing has changed`);
  for (const [index, container] of old.entries()) {
    const startedMs = Date.now();
    await addOne(service, (await listContainers(service)).filter(isRunning));
    const readyMs = Date.now();
    await stopAndRemove(container);
    const times = `a new one was ready after ${((readyMs - startedMs) / 1000).toFixed(1)} s, the old one gone ${seconds(readyMs)} later`;
    onStep(`${service} ${index + 1} of ${old.length}: ${times}`);
  }
  await matchReplicas(service, replicas, onStep);
}

async function matchReplicas(service, replicas, onStep) {
  const now = (await listContainers(service)).filter(isRunning);
  if (now.length !== replicas) onStep(`${service}: ${now.length} → ${replicas} containers`);
  for (let count = now.length; count < replicas; count += 1) await addOne(service, (await listContainers(service)).filter(isRunning));
  for (const container of now.slice(0, Math.max(0, now.length - replicas))) await stopAndRemove(container);
}

/** @throws Error when something does not become ready; what served before goes on serving */
export async function redeploy({ services, all, onStep }) {
  const refused = await whyNoCompose();
  if (refused !== null) throw new Error(refused);
  const onWait = () => {
    throw new Error('another redeploy runs on this machine');
  };
  const roll = async () => {
    for (const service of services) await rollService(await examine(service), { all, onStep });
  };
  await exclusively(roll, { onWait, signal: new AbortController().signal, name: '\0concierge-redeploy' });
}
