import { randomBytes } from 'node:crypto';
import { eventually, startScriptedModel, System } from '@concierge/testing';
import { z } from 'zod';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface SandboxKills {
  readonly sandbox: 'docker' | 'bubblewrap';
  /** kill -9 of a worker, each in the middle of another turn's command. */
  readonly kills: number;
  readonly tree?: string | undefined;
}

export interface SandboxKillsReport {
  /** How often turns ended in each way. */
  readonly ends: Readonly<Record<string, number>>;
  /** Turns that had a container when their worker was killed; without any, a run in Docker proves nothing. */
  readonly withContainer: number;
  /** What is there a minute after the last kill: containers of the tenant, processes of its commands. */
  readonly left: readonly string[];
}

/** How long a container may outlive its worker. */
const GONE_WITHIN_MS = 60_000;
/** A worker and an engine that have much to do take this long to start, and to go on with a turn. */
const BEGIN_TIMEOUT_MS = 180_000;
const ANSWER_TIMEOUT_MS = 280_000;
/** Far longer than the run: what is gone at its end did not go by itself. */
const SLEEP_S = 590;

const Answer = z.object({
  reply: z.string(),
  finishReason: z.string(),
  toolCalls: z.array(z.object({ name: z.string(), isError: z.boolean() })),
});

/**
 * One worker runs `bash` with a long command and is killed in the middle of it; the next one starts, goes on with the
 * turn and gets a turn of its own, in which it is killed; and so on. The last one lives.
 */
export async function runSandboxKills({ sandbox, kills, tree }: SandboxKills): Promise<SandboxKillsReport> {
  await using stack = new AsyncDisposableStack();
  const model = await startScriptedModel();
  stack.defer(async () => await model.close());
  const system = stack.use(await System.start({ modelUrl: model.url, tree, env: { SANDBOX: sandbox } }));
  const run = new KillRun({ system, sandbox, tenantId: `kills-${randomBytes(6).toString('hex')}` });
  await run.prepare();
  for (let kill = 1; kill <= kills; kill += 1) await run.killInTheMiddle(kill);
  return await run.report();
}

interface KillRunParts {
  readonly system: System;
  readonly sandbox: SandboxKills['sandbox'];
  readonly tenantId: string;
}

class KillRun {
  readonly #system: System;
  readonly #sandbox: SandboxKills['sandbox'];
  readonly #tenantId: string;
  /** In the command line of everything that this run's commands start. */
  readonly #marker = `kills_${randomBytes(8).toString('hex')}`;
  readonly #answers: Promise<string>[] = [];
  #withContainer = 0;
  #key = '';

  constructor({ system, sandbox, tenantId }: KillRunParts) {
    this.#system = system;
    this.#sandbox = sandbox;
    this.#tenantId = tenantId;
  }

  async prepare(): Promise<void> {
    this.#key = (await this.#system.createTenant(this.#tenantId)).admin;
  }

  async killInTheMiddle(kill: number): Promise<void> {
    const marker = `${this.#marker}_${String(kill)}_`;
    // The shell's own name carries the marker; a child of it makes sure that more than one process would be left.
    const command = `sleep ${String(SLEEP_S)} & exec -a ${marker} sleep ${String(SLEEP_S)}`;
    // By round, as often as it is asked: an answer that came before the kill and was not recorded is asked for again.
    const call = JSON.stringify({ command, timeoutMs: SLEEP_S * 1000 });
    this.#answers.push(this.#ask(`${marker} [[tools:bash ${call}]] [[say:went on]]`));
    // The process itself, not the shell that is about to become it or a client that brings its words.
    await eventually(async () => (await processesWith(marker)).some((line) => line.startsWith(marker)), { timeoutMs: BEGIN_TIMEOUT_MS });
    if ((await this.#containers()).length > 0) this.#withContainer += 1;
    for (const worker of this.#system.workers) {
      await worker.kill();
      worker.start();
    }
  }

  async report(): Promise<SandboxKillsReport> {
    // Beside the answers: what they take on a busy machine is no part of the minute, nor is what a look takes.
    const gone = eventually(async () => (await this.#left()).length === 0, { timeoutMs: GONE_WITHIN_MS, everyMs: 250 }).catch(
      () => undefined,
    );
    const ends: Record<string, number> = {};
    for (const end of await Promise.all(this.#answers)) ends[end] = (ends[end] ?? 0) + 1;
    await gone;
    return { ends, withContainer: this.#withContainer, left: await this.#left() };
  }

  async #left(): Promise<string[]> {
    return [...(await this.#containers()), ...(await processesWith(this.#marker))];
  }

  /** A machine for bubblewrap needs no engine that could be asked. */
  async #containers(): Promise<string[]> {
    return this.#sandbox === 'docker' ? await listContainers(this.#tenantId) : [];
  }

  /** How the turn ended, in words that can be counted. */
  async #ask(message: string): Promise<string> {
    const response = await fetch(`${this.#system.url}/api/admin`, {
      method: 'POST',
      headers: { 'x-api-key': this.#key, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ message }),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    if (response.status !== 200) return `${String(response.status)} ${await response.text()}`;
    const { reply, finishReason, toolCalls } = Answer.parse(await response.json());
    const calls = toolCalls.map(({ name, isError }) => `${name} ${isError ? 'failed' : 'succeeded'}`);
    return [...calls, reply, finishReason].join(', ');
  }
}

const runProgram = promisify(execFile);

/**
 * Processes of this machine whose command line has `marker`; those in containers are processes of this machine, too.
 */
async function processesWith(marker: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const lines = await Promise.all(pids.map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.includes(marker)).map((line) => line.split('\0').join(' ').trim());
}

/** Containers, running or not, that carry a tenant's name in one of their labels. */
async function listContainers(tenantId: string): Promise<string[]> {
  const { stdout } = await runProgram('docker', ['ps', '--all', '--no-trunc', '--format', '{{.ID}} {{.Labels}}']);
  return stdout.split('\n').filter((line) => line.includes(tenantId));
}
