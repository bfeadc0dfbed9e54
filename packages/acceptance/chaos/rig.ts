import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { countUnanswered, eventually, freePort, ServiceProcess, System, type SystemOptions, type TenantKeys } from '@concierge/testing';
import { audit, renderFindings, type AuditReport } from './audit/auditor.ts';
import { callsInFlight, Evidence, type LedgerLine } from './audit/evidence.ts';
import { FaultInjector, type FaultPlan, type Fleet } from './faults.ts';
import { Load } from './load/load.ts';
import { planLoad, type LoadSize } from './load/load-plan.ts';
import { SeededRandom } from './load/seeded-random.ts';

/** What is put to the test: the system as it ships, or the naive one. */
export interface Target extends Fleet, AsyncDisposable {
  readonly dataDir: string;
  readonly logsFolder: string;
  readonly services: readonly ServiceProcess[];
  createTenant(tenantId: string): Promise<TenantKeys>;
}

export interface RigOptions<Tested extends Target = Target> {
  readonly seed: number;
  readonly load: LoadSize;
  start(modelUrl: string): Promise<Tested>;
}

export interface RunOptions {
  /** Breaks things while the load runs; the load stops asking when it resolves. */
  readonly meanwhile: () => Promise<void>;
  /** Ask every planned turn, even when `meanwhile` is over. */
  readonly wholeLoad: boolean;
  /** Time for the whole run; a turn that has not ended by then is a finding. */
  readonly deadlineMs: number;
}

/** What these end is a finding: far more than a busy machine needs for thousands of turns. */
const REST_TIMEOUT_MS = 240_000;
const REREAD_TIMEOUT_MS = 480_000;

export interface SystemSize extends Pick<
  SystemOptions,
  'gateways' | 'workers' | 'crons' | 'tree' | 'envFor' | 'env' | 'dataDir' | 'logsFolder' | 'databaseUrl' | 'replicatedRedis'
> {
  readonly graceS?: number;
}

/** The system as it ships, so many processes of it. */
export async function startSystem(
  modelUrl: string,
  { gateways = 2, workers = 3, graceS = 25, env = {}, ...more }: SystemSize = {},
): Promise<System> {
  return await System.start({ modelUrl, gateways, workers, ...more, env: { SHUTDOWN_GRACE_S: String(graceS), ...env } });
}

/** A running target with its model server, its load and a folder for what they leave behind. */
export class ChaosRig<Tested extends Target = Target> implements AsyncDisposable {
  readonly target: Tested;
  readonly evidence: Evidence;
  readonly random: SeededRandom;
  readonly load: Load;
  readonly tenants: ReadonlyMap<string, TenantKeys>;
  readonly #options: RigOptions<Tested>;
  readonly #model: ServiceProcess;
  #markers = 0;

  private constructor(
    options: RigOptions<Tested>,
    parts: { target: Tested; evidence: Evidence; model: ServiceProcess; tenants: Map<string, TenantKeys>; random: SeededRandom },
  ) {
    this.#options = options;
    this.target = parts.target;
    this.evidence = parts.evidence;
    this.random = parts.random;
    this.tenants = parts.tenants;
    this.#model = parts.model;
    this.load = new Load({
      gateways: parts.target.gatewayUrls,
      tenants: parts.tenants,
      evidence: parts.evidence,
      random: parts.random.fork(),
    });
  }

  static async start<Tested extends Target>(options: RigOptions<Tested>): Promise<ChaosRig<Tested>> {
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
    await eventually(async () => (await fetch(modelUrl)).status === 404, { timeoutMs: 90_000, everyMs: 100 });
    const target = await options.start(modelUrl);
    const tenants = new Map<string, TenantKeys>();
    for (let index = 0; index < options.load.tenants; index += 1) {
      const tenantId = `chaos-${String(index)}`;
      tenants.set(tenantId, await target.createTenant(tenantId));
    }
    return new ChaosRig<Tested>(options, { target, evidence, model, tenants, random: new SeededRandom(options.seed) });
  }

  get tenantIds(): string[] {
    return [...this.tenants.keys()];
  }

  /** Load and faults at once, to the end of both. */
  async run({ meanwhile, wholeLoad, deadlineMs }: RunOptions): Promise<void> {
    const giveUp = AbortSignal.timeout(deadlineMs);
    const enough = new AbortController();
    const plan = planLoad(this.random.fork(), this.#options.load);
    const loaded = this.load.run(plan, { enough: enough.signal, giveUp });
    await meanwhile();
    if (!wholeLoad) enough.abort();
    await loaded;
  }

  async strike(plan: FaultPlan): Promise<void> {
    await new FaultInjector(this.target, this.evidence, this.random.fork()).run(plan);
  }

  /** Returns a marker for a question that a scenario sends itself. */
  newMarker(name: string): string {
    this.#markers += 1;
    return `mk-${name}-${String(this.#markers).padStart(4, '0')}`;
  }

  /** Waits without faults, so that earlier faults can take effect. */
  async quiet(ms: number): Promise<void> {
    await wait(ms);
  }

  /** Model calls that are being answered, as the model server sees it. */
  async callsInFlight(): Promise<LedgerLine[]> {
    return callsInFlight(await this.evidence.readLedger());
  }

  /** Waits until no accepted turn waits any more. The auditor finds those left after the deadline. */
  async rest(): Promise<void> {
    await eventually(async () => (await countUnanswered(join(this.target.dataDir, 'tenants'))) === 0, {
      timeoutMs: REST_TIMEOUT_MS,
      everyMs: 200,
    }).catch(() => undefined);
  }

  /** Waits until every accepted turn is answered, reads each again, stops the services, and has the rest audited. */
  async finish({ reread = true } = {}): Promise<AuditReport> {
    await this.rest();
    if (reread) await this.load.rereadAll(AbortSignal.timeout(REREAD_TIMEOUT_MS));
    await this.#terminateAll();
    const { dataDir, logsFolder } = this.target;
    return await audit({ evidence: this.evidence, tenantsFolder: join(dataDir, 'tenants'), logsFolder });
  }

  /**
   * Moves the files of a failed run to a folder that stays. @returns the folder and the findings, for the error's
   * message
   */
  async explain(report: AuditReport): Promise<string> {
    const kept = `${this.evidence.folder}-kept`;
    await rename(this.evidence.folder, kept);
    await cp(this.target.dataDir, join(kept, 'data'), { recursive: true, verbatimSymlinks: true });
    await cp(this.target.logsFolder, join(kept, 'logs'), { recursive: true });
    return `${renderFindings(report.findings)}\nseed ${String(this.#options.seed)}, everything kept in ${kept}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#model.kill();
    await this.target[Symbol.asyncDispose]();
    await rm(this.evidence.folder, { recursive: true, force: true });
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
