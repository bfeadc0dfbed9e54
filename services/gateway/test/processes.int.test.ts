import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import {
  eventually,
  gate,
  say as speak,
  startScriptedSystem,
  until,
  type ScriptedModel,
  type ServiceProcess,
  type System,
  type TenantKeys,
} from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { z } from 'zod';
import { askPlainly } from './ask.ts';
import { RawClient } from './raw-client.ts';
import { joinText, parseEvents, type SeenEvent } from './sse.ts';

/** Nobody waits for it. */
const GRACE_S = 60;
const STREAMS_MAX = 8;
/** Of processes that start, on a machine that may have other things to do. */
const startWait = { timeoutMs: 120_000 };
const JSON_ONLY = { Accept: 'application/json', 'Content-Type': 'application/json' };

let system: System;
let model: ScriptedModel;
let gateway: ServiceProcess;
let tenant: TenantKeys;

setUpEach(async (stack) => {
  const several = {
    GATEWAY_PROCESSES: '2',
    GATEWAY_MAX_STREAMS_PER_KEY: String(STREAMS_MAX),
    SHUTDOWN_GRACE_S: String(GRACE_S),
  };
  ({ system, model } = await startScriptedSystem(stack, { envFor: (name) => (name.startsWith('gateway') ? several : {}) }));
  const [first] = system.gateways;
  if (first === undefined) throw new Error('no gateway');
  gateway = first;
  stack.defer(async () => void (await gateway.terminate()));
  tenant = await system.createTenant('acme');
  await bothReady();
});

/** Two processes serve, and the one that was killed is not among them. */
async function bothReady(killed?: number): Promise<void> {
  await eventually(() => listProcesses().length === 2 && !listProcesses().includes(killed ?? 0));
  await eventually(async () => (await readMetric('concierge_gateway_processes')) === 2, startWait);
}

/** Those that the primary has started. */
function listProcesses(): number[] {
  return listChildren(gateway.pid ?? 0);
}

function listChildren(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && readParent(pid) === parent);
}

/** Undefined once it has ended, also while its end was not asked for yet. */
function readParent(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}

/** Clients that asked a process which stood still for longer than they have for their headers; all are answered. */
async function askFrozen(): Promise<readonly RawClient[]> {
  const clients = await Promise.all(Array.from({ length: 8 }, async () => RawClient.open({ url: system.url })));
  // A connection is open before a process has taken it, and one process may take most of them.
  const holders = await eventually(() => {
    const found = clients.map(findHolder);
    return found.every((pid) => pid !== undefined) ? found : undefined;
  });
  const count = (pid: number): number => holders.filter((holder) => holder === pid).length;
  const [frozen = 0] = listProcesses().toSorted((left, right) => count(right) - count(left));
  const frozenMs = performance.now();
  process.kill(frozen, 'SIGSTOP');
  try {
    for (const client of clients) client.send('GET /livez HTTP/1.1', 'Host: localhost', '', '');
    await eventually(() => performance.now() - frozenMs > 17_000);
  } finally {
    process.kill(frozen, 'SIGCONT');
  }
  await eventually(() => clients.every(({ status }) => status !== undefined));
  return clients;
}

/** The process that has taken a client's connection. */
function findHolder({ socket }: RawClient): number | undefined {
  const name = findSocket(socket.localPort ?? 0);
  return name === undefined ? undefined : listProcesses().find((pid) => listSockets(pid).includes(name));
}

/** The gateway's end of the connection from this port, as descriptors name it (proc(5), /proc/net/tcp). */
function findSocket(clientPort: number): string | undefined {
  const remote = `:${clientPort.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n'));
  const ends = rows.map((row) => row.trim().split(/\s+/u)).filter((fields) => fields[2]?.endsWith(remote) === true);
  const inode = ends.map((fields) => fields[9]).find((one) => one !== '0');
  return inode === undefined ? undefined : `socket:[${inode}]`;
}

function listSockets(pid: number): string[] {
  const folder = `/proc/${String(pid)}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(`${folder}/${name}`)];
    } catch {
      return [];
    }
  });
}

interface LogLine {
  readonly msg: string;
  readonly pid: number;
  readonly requestId?: string;
}

async function readLog(): Promise<LogLine[]> {
  const text = await system.readServiceLog(gateway.name);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): LogLine => JSON.parse(line));
}

/** On a connection of its own, so that any process may answer it. */
async function ask(path: string, { method = 'GET', headers = {}, body }: { method?: string; headers?: object; body?: unknown } = {}) {
  return askPlainly(system.url, path, {
    method,
    headers: new Headers({ 'X-API-Key': tenant.admin, Connection: 'close', ...headers }),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

async function say(message: string, idempotencyKey = message): Promise<Response> {
  const headers = { ...JSON_ONLY, 'Idempotency-Key': encodeURIComponent(idempotencyKey) };
  return ask('/api/admin', { method: 'POST', headers, body: { message } });
}

/** Opens a stream on a connection of its own. */
async function openStream(message: string): Promise<Response> {
  return fetch(`${system.url}/api/admin`, {
    method: 'POST',
    headers: { 'X-API-Key': tenant.admin, 'Content-Type': 'application/json' },
    body: JSON.stringify({ message }),
  });
}

/** So many replies to a message are held half-way, until the gate is opened. */
function holdReplies(message: string, { count, reply }: { readonly count: number; readonly reply: string }): ReturnType<typeof gate<void>> {
  const goOn = gate();
  const half = reply.indexOf(' ', reply.length / 2) + 1;
  const script = [speak(reply.slice(0, half)), until(goOn.opened), speak(reply.slice(half), { chunks: 5, delayMs: 20 })];
  model.when(message, ...Array.from({ length: count }, () => script));
  return goOn;
}

const Answered = z.object({ turnId: z.string(), reply: z.string() });

/** As a careful client: asks again with the same key until it is answered. */
async function untilAnswered(message: string): Promise<z.output<typeof Answered>> {
  return eventually(async () => {
    const answer = await say(message);
    expect(answer.status).toBe(200);
    return Answered.parse(await answer.json());
  });
}

/** All events of a new turn; a stream that is cut off is resumed where it was. */
async function readWhole(message: string): Promise<{ readonly events: readonly SeenEvent[]; readonly cuts: number }> {
  const events: SeenEvent[] = [];
  let cuts = 0;
  let stream = await openStream(message);
  for (;;) {
    events.push(...(await readEvents(stream)));
    const last = events.at(-1);
    if (last === undefined || last.type === 'done') return { events, cuts };
    cuts += 1;
    const path = `/api/turns/${String(events[0]?.data['turnId'])}/events`;
    stream = await eventually(async () =>
      fetch(`${system.url}${path}`, { headers: { 'X-API-Key': tenant.admin, 'Last-Event-ID': last.id } }),
    );
  }
}

/** The events that arrived whole, whether the stream ended or was cut off. */
async function readEvents({ body }: Response): Promise<SeenEvent[]> {
  let text = '';
  try {
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
  } catch {
    // What is there is read; the rest comes with the next stream.
  }
  return parseEvents(text.slice(0, text.lastIndexOf('\n\n') + 2));
}

/** A server that has a port. */
async function listenOn(port: number): Promise<AsyncDisposable> {
  const server = createServer();
  server.listen({ port, host: '::' });
  await once(server, 'listening');
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

async function isFree(port: number): Promise<boolean> {
  await using _taken = await listenOn(port);
  return true;
}

/** As any process answers it, once its primary has answered that one in time. */
async function readMetrics(): Promise<string> {
  return eventually(async () => {
    const answer = await ask('/metrics');
    return answer.status === 200 ? await answer.text() : undefined;
  });
}

/** A value of /metrics, summed over its labels. */
async function readMetric(name: string, label = ''): Promise<number> {
  const text = await readMetrics();
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

describe('a gateway of two processes', () => {
  it('answers on one port from both, one access line for each request, with the process in each line', async () => {
    const requestIds: string[] = [];
    const statuses: number[] = [];
    const askOnce = async (): Promise<void> => {
      const id = `request-${String(requestIds.length)}`;
      requestIds.push(id);
      statuses.push((await ask('/api/agents', { headers: { 'X-Request-Id': id } })).status);
    };
    const readLines = async (): Promise<LogLine[]> =>
      (await readLog()).filter(({ msg, requestId = '' }) => msg === 'request' && requestIds.includes(requestId));
    while (requestIds.length < 60) await askOnce();
    // While one of them stands still the other one takes all connections.
    await eventually(async () => {
      await askOnce();
      return new Set((await readLines()).map(({ pid }) => pid)).size > 1;
    });
    const lines = await eventually(async () => {
      const found = await readLines();
      return found.length >= requestIds.length ? found : undefined;
    });
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(lines).toHaveLength(requestIds.length);
    expect(new Set(lines.map(({ requestId }) => requestId))).toEqual(new Set(requestIds));
    expect(new Set(lines.map(({ pid }) => pid))).toEqual(new Set(listProcesses()));
    expect((await readLog()).every(({ pid }) => [...listProcesses(), gateway.pid].includes(pid))).toBe(true);
  });

  it('adds up its metrics, whichever process is asked, and no sum falls when one is killed', async () => {
    const asked = 30;
    for (let request = 0; request < asked; request += 1) await ask('/api/agents');
    const count = async (): Promise<number> => readMetric('concierge_http_request_duration_seconds_count', 'route="listAgents"');
    // A process that does not answer within a second is counted as it last answered: from now on that is all of it.
    await eventually(async () => (await count()) === asked);
    for (let look = 0; look < 6; look += 1) expect(await count()).toBe(asked);
    const [killed = 0] = listProcesses();
    process.kill(killed, 'SIGKILL');
    await bothReady(killed);
    for (let look = 0; look < 6; look += 1) expect(await count()).toBe(asked);
    await ask('/api/agents');
    await eventually(async () => (await count()) === asked + 1);
    expect(await count()).toBe(asked + 1);
    expect(await readMetric('process_start_time_seconds')).toBeLessThan(Date.now() / 1000);
    const text = await readMetrics();
    expect(text.match(/^process_resident_memory_bytes\{/gmu)).toHaveLength(1);
    expect(await readMetric('process_resident_memory_bytes')).toBeGreaterThan(150e6);
  });

  it('holds the limit of open streams of a key over both', async () => {
    const streams: Response[] = [];
    const statuses: number[] = [];
    for (let count = 0; count < STREAMS_MAX + 4; count += 1) {
      const stream = await openStream(`[[hang]] ${String(count)}`);
      statuses.push(stream.status);
      streams.push(stream);
      const open = Math.min(count + 1, STREAMS_MAX);
      await eventually(async () => (await readMetric('concierge_event_streams_open')) === open);
    }
    expect(statuses).toEqual([...Array.from({ length: STREAMS_MAX }, () => 200), 503, 503, 503, 503]);
    for (const stream of streams) await stream.body?.cancel();
    await eventually(async () => (await readMetric('concierge_event_streams_open')) === 0);
    const again = await openStream('[[hang]] again');
    expect(again.status).toBe(200);
    await again.body?.cancel();
  });

  it('loses nothing when one is killed under open streams and requests, and has two again', async () => {
    const [killed = 0] = listProcesses();
    const reply = Array.from({ length: 20 }, (_, word) => `word${String(word)}`).join(' ');
    // The others are for the requests, which wait for their replies, too.
    const count = STREAMS_MAX / 2;
    const goOn = holdReplies('held', { count, reply });
    const streams = Array.from({ length: count }, async (_, index) => readWhole(`held ${String(index)}`));
    await eventually(async () => (await readMetric('concierge_event_streams_open')) === count);
    const posts = Array.from({ length: 40 }, async (_, index) => untilAnswered(`post ${String(index)}`));
    await posts[0];
    process.kill(killed, 'SIGKILL');
    goOn.open();
    for (const { events, cuts } of await Promise.all(streams)) {
      expect(joinText(events)).toBe(reply);
      expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
      expect(cuts).toBeLessThanOrEqual(1);
    }
    expect((await Promise.all(posts)).map(({ reply: said }) => said)).toEqual(posts.map(() => 'ok'));
    await bothReady(killed);
    const turns = new Set((await Promise.all(posts)).map(({ turnId }) => turnId));
    expect(turns.size).toBe(posts.length);
  });

  it('goes on serving while one of them stands still', async () => {
    const [frozen = 0] = listProcesses();
    process.kill(frozen, 'SIGSTOP');
    try {
      for (let request = 0; request < 20; request += 1) expect((await ask('/api/agents')).status).toBe(200);
    } finally {
      process.kill(frozen, 'SIGCONT');
    }
  });

  it('does not blame clients for the time in which one of them stood still', async () => {
    let refused = false;
    // A process that goes on may read what has arrived before it looks at times: then it answers, which is right, too.
    for (let round = 0; round < 5 && !refused; round += 1) {
      const clients = await askFrozen();
      for (const { status, seen } of clients) expect(status === 200 || (status === 503 && /^retry-after: /imu.test(seen))).toBe(true);
      refused = clients.some(({ status }) => status === 503);
      for (const client of clients) client[Symbol.dispose]();
    }
    expect(refused).toBe(true);
  });

  it('drains on SIGTERM under load: no request of a client that looks at /readyz fails, and the exit code is 0', async () => {
    await gateway.terminate();
    gateway.start({ GATEWAY_LEAVE_S: '10' });
    await system.ready();
    await bothReady();
    const goOn = holdReplies('held', { count: STREAMS_MAX - 2, reply: 'a b c d e f' });
    const running = Array.from({ length: STREAMS_MAX - 2 }, async (_, index) => (await openStream(`held ${String(index)}`)).text());
    await eventually(async () => (await readMetric('concierge_event_streams_open')) === running.length);
    const statuses: number[] = [];
    let leaving = false;
    const load = Array.from({ length: 4 }, async (_, client) => {
      for (let count = 0; !leaving; count += 1) statuses.push((await say(`load ${String(client)} ${String(count)}`)).status);
    });
    await eventually(() => statuses.length > 10);
    const ended = gateway.terminate();
    await eventually(async () => (await ask('/readyz')).status === 503);
    leaving = true;
    await Promise.all(load);
    goOn.open();
    expect(new Set(statuses)).toEqual(new Set([200]));
    for (const text of await Promise.all(running)) expect(joinText(parseEvents(text))).toBe('a b c d e f');
    expect(await ended).toBe(0);
    expect(listProcesses()).toEqual([]);
  });

  it('drains when a terminal signals all processes at once', async () => {
    const goOn = holdReplies('held', { count: 1, reply: 'a b c' });
    const running = (await openStream('held')).text();
    await eventually(async () => (await readMetric('concierge_event_streams_open')) === 1);
    const ended = gateway.signal('SIGINT', { exited: true });
    for (const pid of listProcesses()) process.kill(pid, 'SIGINT');
    goOn.open();
    expect(await ended).toBe(0);
    expect(joinText(parseEvents(await running))).toBe('a b c');
  });

  it('ends its processes, which finish what they have, when the primary is killed, and leaves the port to the next', async () => {
    const left = listProcesses();
    const goOn = holdReplies('held', { count: 1, reply: 'a b c d' });
    const running = (await openStream('held')).text();
    await eventually(async () => (await readMetric('concierge_event_streams_open')) === 1);
    await gateway.kill();
    await eventually(async () => isFree(Number(new URL(system.url).port)));
    goOn.open();
    expect(joinText(parseEvents(await running))).toBe('a b c d');
    await eventually(() => left.every((pid) => readParent(pid) === undefined));
    gateway.start();
    await system.ready();
    expect((await say('hello')).status).toBe(200);
  });

  it('ends as a whole, once, when it cannot start', async () => {
    await gateway.terminate();
    await using _taken = await listenOn(Number(new URL(system.url).port));
    gateway.start();
    await eventually(() => !gateway.alive, startWait);
    expect(await gateway.terminate()).toBe(1);
    // What it wrote last may still be on its way into the file when it has ended.
    const lines = await eventually(async () => {
      const found = await readLog();
      return found.some(({ msg, pid }) => msg === 'cannot start' && pid === gateway.pid) ? found : undefined;
    });
    const failed = lines.filter(({ msg }) => msg === 'cannot start').map(({ pid }) => pid);
    expect(failed.filter((pid) => pid === gateway.pid)).toHaveLength(1);
    expect(failed.length).toBeGreaterThan(1);
    expect(new Set(failed).size).toBe(failed.length);
    expect(lines.filter(({ msg }) => msg.includes('another one is started'))).toEqual([]);
  });

  it('names a number of processes that it cannot take among all bad values, and ends', async () => {
    await gateway.terminate();
    gateway.start({ GATEWAY_PROCESSES: '100', GATEWAY_LEAVE_S: 'soon' });
    await eventually(() => !gateway.alive, startWait);
    expect(await gateway.terminate()).toBe(1);
    const bad = ['  - GATEWAY_PROCESSES: ', '  - GATEWAY_LEAVE_S: '];
    // What it wrote last may still be on its way into the file when it has ended.
    const lines = await eventually(async () => {
      const found = (await system.readServiceLog(gateway.name)).split('\n');
      return bad.every((start) => found.some((line) => line.startsWith(start))) ? found : undefined;
    });
    for (const start of bad) expect(lines.filter((line) => line.startsWith(start))).toHaveLength(1);
  });
});
