import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, freePort, ServiceProcess, System, type TenantKeys } from '@concierge/testing';
import { audit, renderFindings, type AuditReport } from './auditor.ts';
import { Evidence } from './evidence.ts';
import { FaultInjector, type FaultPlan, type Fleet } from './faults.ts';
import { Load } from './load.ts';
import { planLoad, type LoadSize } from './load-plan.ts';
import { SeededRandom } from './seeded-random.ts';

/** What is put to the test: the system as it ships, or the naive one. */
export interface Target extends Fleet, AsyncDisposable {
  readonly dataDir: string;
  readonly services: readonly ServiceProcess[];
  createTenant(tenantId: string): Promise<TenantKeys>;
}

export interface RigOptions {
  readonly seed: number;
  readonly load: LoadSize;
  start(modelUrl: string): Promise<Target>;
}

export interface RunOptions {
  /** Breaks things while the load runs; the load stops asking when it resolves. */
  readonly meanwhile: (rig: ChaosRig) => Promise<void>;
  /** Ask every planned turn, even when `meanwhile` is over. */
  readonly wholeLoad: boolean;
  /** All in all; what has not ended by then is a finding. */
  readonly deadlineMs: number;
}

const REST_TIMEOUT_MS = 60_000;
const REREAD_TIMEOUT_MS = 60_000;

/** The system as it ships, so many processes of it, with short leases' worth of grace at SIGTERM. */
export async function startSystem(modelUrl: string, { gateways = 2, workers = 3, graceS = 25 } = {}): Promise<Target> {
  return await System.start({ modelUrl, gateways, workers, env: { SHUTDOWN_GRACE_S: String(graceS) } });
}

/** A running target with its model server, its load and a folder for what they leave behind. */
export class ChaosRig implements AsyncDisposable {
  readonly target: Target;
  readonly evidence: Evidence;
  readonly random: SeededRandom;
  readonly #options: RigOptions;
  readonly #model: ServiceProcess;
  readonly #load: Load;

  private constructor(
    options: RigOptions,
    parts: { target: Target; evidence: Evidence; model: ServiceProcess; tenants: Map<string, TenantKeys>; random: SeededRandom },
  ) {
    this.#options = options;
    this.target = parts.target;
    this.evidence = parts.evidence;
    this.random = parts.random;
    this.#model = parts.model;
    this.#load = new Load({
      gateways: parts.target.gatewayUrls,
      tenants: parts.tenants,
      evidence: parts.evidence,
      random: parts.random.fork(),
    });
  }

  static async start(options: RigOptions): Promise<ChaosRig> {
    const evidence = new Evidence(await mkdtemp(join(tmpdir(), 'concierge-chaos-')));
    const port = await freePort();
    const model = new ServiceProcess({
      name: 'model',
      entry: 'packages/acceptance/chaos/model-main.ts',
      env: { MODEL_PORT: String(port), MODEL_LEDGER: evidence.ledgerFile },
      logFile: join(evidence.folder, 'model.log'),
    });
    model.start();
    const modelUrl = `http://127.0.0.1:${String(port)}/v1`;
    await eventually(async () => (await fetch(modelUrl)).status === 404, { timeoutMs: 30_000, everyMs: 100 });
    const target = await options.start(modelUrl);
    const tenants = new Map<string, TenantKeys>();
    for (let index = 0; index < options.load.tenants; index += 1) {
      const tenantId = `chaos-${String(index)}`;
      tenants.set(tenantId, await target.createTenant(tenantId));
    }
    return new ChaosRig(options, { target, evidence, model, tenants, random: new SeededRandom(options.seed) });
  }

  /** Load and faults at once, to the end of both. */
  async run({ meanwhile, wholeLoad, deadlineMs }: RunOptions): Promise<void> {
    const giveUp = AbortSignal.timeout(deadlineMs);
    const enough = new AbortController();
    const plan = planLoad(this.random.fork(), this.#options.load);
    const loaded = this.#load.run(plan, { enough: enough.signal, giveUp });
    await meanwhile(this);
    if (!wholeLoad) enough.abort();
    await loaded;
  }

  async strike(plan: FaultPlan): Promise<void> {
    await new FaultInjector(this.target, this.evidence, this.random.fork()).run(plan);
  }

  /** Nothing is broken for so long, so that what was broken before can take its course. */
  async quiet(ms: number): Promise<void> {
    await wait(ms);
  }

  /** Waits until all inboxes are empty, reads every turn once more, stops every service, and has the rest audited. */
  async finish({ reread = true } = {}): Promise<AuditReport> {
    // What is still there afterwards is for the auditor to find.
    await eventually(async () => (await this.#waiting()) === 0, { timeoutMs: REST_TIMEOUT_MS, everyMs: 200 }).catch(() => undefined);
    if (reread) await this.#load.rereadAll(AbortSignal.timeout(REREAD_TIMEOUT_MS));
    await this.#terminateAll();
    const { dataDir } = this.target;
    return await audit({ evidence: this.evidence, tenantsFolder: join(dataDir, 'tenants'), logsFolder: join(dataDir, 'logs') });
  }

  /** For a run that went wrong: moves what it left to where it stays. @returns the place, with the findings, for the error's message */
  async explain(report: AuditReport): Promise<string> {
    const kept = `${this.evidence.folder}-kept`;
    await rename(this.evidence.folder, kept);
    await rename(this.target.dataDir, join(kept, 'data'));
    return `${renderFindings(report.findings)}\nseed ${String(this.#options.seed)}, everything kept in ${kept}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#model.kill();
    await this.target[Symbol.asyncDispose]();
    await rm(this.evidence.folder, { recursive: true, force: true });
  }

  async #waiting(): Promise<number> {
    const tenants = join(this.target.dataDir, 'tenants');
    const names = await readdir(tenants);
    const inboxes = await Promise.all(names.map(async (name) => await readdir(join(tenants, name, 'inbox')).catch(() => [])));
    return inboxes.flat().filter((name) => /^t_[0-9a-f]+\.json$/u.test(name)).length;
  }

  /** One that is no longer there has ended by itself: its exit code stands for it. */
  async #terminateAll(): Promise<void> {
    await Promise.all(
      this.target.services.map(async (service) => {
        this.evidence.fault({ atMs: Date.now(), kind: 'terminate', target: service.name, exitCode: await service.terminate() });
      }),
    );
  }
}
