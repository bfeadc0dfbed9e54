import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { backoffMs } from '@concierge/contract';
import { background, newMetrics, stopMessage, stopPart, type Log, type ServiceParts } from '@concierge/runtime';
import type { Config } from '../config.ts';
import { GatheredMetrics } from './gathered-metrics.ts';
import { FromProcess, type FromPrimary } from './messages.ts';
import { CountExchange } from './shared-counts.ts';

/** Of a process that ends again and again. */
const restarts = { firstMs: 100, maxMs: 10_000 };
/** One that lived this long was well. */
const HEALTHY_AFTER_MS = 60_000;

/** Starts the processes of a gateway instead of serving; resolves when the first is ready. The stack stops them. */
export async function wirePrimary({ processes }: Config, { stack, log }: ServiceParts): Promise<void> {
  const primary = stack.adopt(new Primary(log), stopPart);
  await primary.start(processes);
}

/** Keeps a number of processes running that serve one port, and passes on what they have to know of each other. */
class Primary {
  readonly #log: Log;
  readonly #ready = new Set<number>();
  readonly #restarting = new Set<NodeJS.Timeout>();
  readonly #counts = new CountExchange((id, others) => {
    send(cluster.workers?.[id], { others });
  });
  readonly #metrics = new GatheredMetrics(newMetrics('gateway'), (id) => {
    send(cluster.workers?.[id], { measure: true });
  });
  #started = false;
  #stopping = false;

  constructor(log: Log) {
    this.#log = log;
    // Each process accepts for itself: one that hangs or is killed holds no connection back.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // JSON has no NaN, which some metrics are.
    cluster.setupPrimary({ serialization: 'advanced' });
    // Ended at once, by a second signal or for being late. Without either, what it has started drains by itself.
    process.once('exit', () => {
      if (!this.#stopping) return;
      for (const worker of listWorkers()) worker.process.kill('SIGKILL');
    });
  }

  /** One that ends before any is ready ends the whole: it would end again. @throws Error */
  async start(processes: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    for (let started = 0; started < processes; started += 1) {
      this.#fork(1, resolve).once('exit', (code, signal) => {
        reject(new Error(`a process ended before it was ready (${describeEnd(code, signal)})`));
      });
    }
    await promise;
    this.#started = true;
  }

  /** @throws Error when one did not stop cleanly */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const timer of this.#restarting) clearTimeout(timer);
    const ends = await Promise.all(
      listWorkers().map(async (worker) => {
        const ended = once(worker, 'exit');
        // One that is not ready yet does not listen, and has nothing to finish.
        if (this.#ready.has(worker.id)) send(worker, stopMessage);
        else worker.process.kill('SIGTERM');
        const [code]: unknown[] = await ended;
        return code;
      }),
    );
    if (ends.some((code) => typeof code === 'number' && code !== 0)) throw new Error('a process did not stop cleanly');
  }

  /** `attempt`: from 1, how often it was started after an end that was too early. */
  #fork(attempt: number, onReady?: () => void): Worker {
    const startedAtMs = Date.now();
    const worker = cluster.fork();
    worker.on('message', (given: unknown) => {
      // What it had is forgotten; what is still read of it must not bring it back.
      if (worker.isDead()) return;
      const message = FromProcess.parse(given);
      if ('ready' in message) {
        this.#ready.add(worker.id);
        onReady?.();
      } else this.#hear(worker, message);
    });
    worker.once('exit', (code, signal) => {
      this.#ready.delete(worker.id);
      this.#counts.forget(worker.id);
      this.#metrics.forget(worker.id);
      if (this.#stopping || !this.#started) return;
      const isHealthy = Date.now() - startedAtMs > HEALTHY_AFTER_MS;
      this.#forkLater(isHealthy ? 1 : attempt, { ended: worker.process.pid, how: describeEnd(code, signal) });
    });
    return worker;
  }

  #forkLater(attempt: number, facts: { readonly ended: number | undefined; readonly how: string }): void {
    const afterMs = backoffMs(attempt, restarts);
    this.#log.error({ ...facts, afterMs }, 'a process of the gateway ended; another one is started');
    const timer = setTimeout(() => {
      this.#restarting.delete(timer);
      this.#fork(attempt + 1);
    }, afterMs);
    this.#restarting.add(timer);
  }

  #hear(worker: Worker, message: Exclude<FromProcess, { readonly ready: true }>): void {
    if ('counts' in message) {
      this.#counts.count(worker.id, message.counts);
      send(worker, { counted: message.report });
    } else if ('measured' in message) {
      this.#metrics.hear(worker.id, message.measured);
    } else {
      background(this.#answerGather(worker, message.gather), this.#log);
    }
  }

  async #answerGather(worker: Worker, gathered: number): Promise<void> {
    send(worker, { gathered, metrics: await this.#metrics.gather([...this.#ready]) });
  }
}

function listWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).flatMap((worker) => (worker?.isDead() === false ? [worker] : []));
}

function describeEnd(code: number | null, signal: string | null): string {
  return signal ?? `code ${String(code)}`;
}

/** To one that has just ended nothing is sent. */
function send(worker: Worker | undefined, message: FromPrimary): void {
  if (worker?.isConnected() === true) worker.send(message, () => undefined);
}
