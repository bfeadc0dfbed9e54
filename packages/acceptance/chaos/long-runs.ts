import { renderReport } from './audit/auditor.ts';
import type { Finding } from './audit/finding.ts';
import { runBackupKills } from './backup-kills.ts';
import { allClockSteps } from './clocks/stepped-clocks.ts';
import { runCronKills } from './cron/cron-kills.ts';
import { streamFaults } from './redis/lost-streams.ts';
import { redisFaults } from './redis/redis-faults.ts';
import { SeededRandom } from './load/seeded-random.ts';
import { runCluster, runFailover } from './redis/failover.ts';
import { runSandboxKills } from './sandbox/sandbox-kills.ts';
import {
  runChaos,
  runCutConnections,
  runFailPoints,
  runFloodBeside,
  runFullDisk,
  runHangs,
  runLostStreams,
  runNaive,
  runPoison,
  runPowerCuts,
  runRollingRestart,
  runTwoVersions,
  runTwoMachines,
  runWrongClocks,
  type Verdict,
} from './scenarios.ts';
import { runAnswerOrder } from './webhooks/answer-order.ts';
import { runWebhookKills } from './webhooks/webhook-kills.ts';

export interface LongOptions {
  readonly seed: number;
  readonly tree: string | undefined;
  readonly turns: number | undefined;
  readonly sessions: number;
  readonly tenants: number;
  readonly kills: number | undefined;
  readonly stops: number;
  readonly redisKills: number;
  readonly flushes: number;
  readonly gateways: number;
  readonly workers: number;
  readonly people: number;
  readonly steps: number;
  readonly rounds: number | undefined;
  readonly seconds: number | undefined;
  readonly sandbox: 'docker' | 'bubblewrap';
  /** Keeps the files of a run without findings, too. */
  readonly keep: boolean;
}

/** How many promises were broken, and the report of the run. */
export interface Outcome {
  readonly findings: number;
  readonly text: string;
}

const LOAD_SECONDS = 600;
const CRON_SECONDS = 120;
const MACHINES_SECONDS = 60;
const STOP_MS = 11_000;

const times = <Item>(items: readonly Item[], rounds: number): Item[] => Array.from({ length: rounds }, () => items).flat();

/** Runs a scenario with a rig; returns the report, and where the files are when there are findings. */
async function audited(run: (verdict: Verdict) => Promise<void>, { keep }: LongOptions): Promise<Outcome> {
  let outcome: Outcome = { findings: 1, text: 'the run ended without a report' };
  await run(async (report, rig) => {
    const findings = report.findings.length;
    const kept = findings > 0 || keep ? `\n\n${await rig.explain(report)}` : '';
    outcome = { findings, text: `${renderReport(report)}${kept}` };
  });
  return outcome;
}

/** What counts are the kinds that were not found. */
async function expected(kinds: readonly Finding['kind'][], run: (verdict: Verdict) => Promise<void>): Promise<Outcome> {
  let text = '';
  let found = new Set<string>();
  await run(async (report) => {
    text = renderReport(report);
    found = new Set(report.findings.map(({ kind }) => kind));
    await Promise.resolve();
  });
  const missing = kinds.filter((kind) => !found.has(kind));
  return { findings: missing.length, text: `${text}\n\nfound: ${[...found].join(', ')}; findings are kinds that were not found in it` };
}

function counted(report: { readonly findings: readonly unknown[] }): Outcome {
  return { findings: report.findings.length, text: JSON.stringify(report, null, 2) };
}

async function sideBySide(options: LongOptions, database?: 'postgres'): Promise<Outcome> {
  const { seed, tree } = options;
  if (tree === undefined) return { findings: 1, text: 'needs --tree: a checkout of an earlier version, with its packages installed' };
  return await audited(async (verdict) => runTwoVersions({ seed, tree, ...(database && { database }) }, verdict), options);
}

const scenarios: Readonly<Record<string, (options: LongOptions) => Promise<Outcome>>> = {
  chaos: async (options) => {
    const { seed, tree, turns = 5000, sessions, tenants, kills = 200, stops, redisKills, flushes, gateways, workers } = options;
    const overMs = (options.seconds ?? LOAD_SECONDS) * 1000;
    const load = { turns, conversations: sessions, tenants, overMs, burst: 3 };
    const faults = { kills, stops, stopMs: STOP_MS, redisKills, flushes, overMs };
    const size = { gateways, workers, deadlineMs: overMs * 2 + 120_000 };
    return await audited(async (verdict) => runChaos({ seed, tree, load, faults, ...size }, verdict), options);
  },
  backup: async (options) => {
    const { seed, tree, turns = 1500, sessions, tenants, kills = 30, seconds = CRON_SECONDS } = options;
    const overMs = seconds * 1000;
    const load = { turns, conversations: sessions, tenants, overMs, burst: 3 };
    const faults = { kills, stops: 0, stopMs: STOP_MS, redisKills: 0, flushes: 0, overMs };
    return await audited(async (verdict) => runBackupKills({ seed, tree, load, faults, deadlineMs: overMs * 3 }, verdict), options);
  },
  cluster: async (options) => await audited(async (verdict) => runCluster(options, verdict), options),
  failover: async (options) => await audited(async (verdict) => runFailover(options, verdict), options),
  failpoints: async (options) => await audited(async (verdict) => runFailPoints(options, verdict), options),
  rolling: async (options) => await audited(async (verdict) => runRollingRestart(options, verdict), options),
  versions: async (options) => await sideBySide(options),
  'versions-postgres': async (options) => await sideBySide(options, 'postgres'),
  cron: async ({ seed, tree, seconds = CRON_SECONDS, flushes }) =>
    counted(await runCronKills({ seed, tree, schedules: 40, overMs: seconds * 1000, flushes })),
  webhooks: async ({ seed, tree, turns = 1000, kills = 60, flushes }) =>
    counted(await runWebhookKills({ seed, tree, messages: turns, people: 50, kills, flushes })),
  sandbox: async ({ sandbox, kills = 50, tree }) => {
    const report = await runSandboxKills({ sandbox, kills, tree });
    const findings = [...report.left, ...Object.keys(report.ends).slice(1)];
    return counted({ ...report, findings });
  },
  order: async ({ seed, tree, people, rounds = 4 }) =>
    counted(await runAnswerOrder({ seed, tree, people, faults: times(redisFaults, rounds) })),
  streams: async (options) => {
    const rounds = times(streamFaults, options.rounds ?? 4).map((fault) => ({ fault, turns: options.turns ?? 50 }));
    return await audited(async (verdict) => runLostStreams({ ...options, rounds }, verdict), options);
  },
  connections: async (options) =>
    await audited(async (verdict) => runCutConnections({ ...options, cuts: options.kills ?? 300 }, verdict), options),
  clocks: async (options) => {
    const steps = new SeededRandom(options.seed).shuffled(allClockSteps).slice(0, options.steps);
    return await audited(async (verdict) => runWrongClocks({ ...options, steps }, verdict), options);
  },
  poison: async (options) => {
    const rounds = times([{ innocents: 8 }], options.rounds ?? 20);
    return await audited(async (verdict) => runPoison({ ...options, rounds }, verdict), options);
  },
  hangs: async (options) => await audited(async (verdict) => runHangs({ ...options, rounds: options.rounds ?? 10 }, verdict), options),
  power: async (options) => await audited(async (verdict) => runPowerCuts({ ...options, cuts: options.rounds ?? 6 }, verdict), options),
  machines: async (options) => {
    const overMs = (options.seconds ?? MACHINES_SECONDS) * 1000;
    const faults = { kills: options.kills ?? 20, stops: 3, stopMs: STOP_MS, redisKills: 1, flushes: 1, overMs };
    return await audited(async (verdict) => runTwoMachines({ ...options, faults }, verdict), options);
  },
  disk: async (options) => await audited(async (verdict) => runFullDisk(options, verdict), options),
  flood: async (options) =>
    await audited(async (verdict) => runFloodBeside({ ...options, turns: options.turns ?? 2000, aloneMs: 20_000 }, verdict), options),
  /** In this one and the next something must be found: what is acknowledged before it is synced. */
  forgets: async ({ seed, rounds = 2 }) =>
    await expected(['lost'], async (verdict) => runPowerCuts({ seed, cuts: rounds, forgets: true }, verdict)),
  naive: async ({ seed }) => await expected(['lost', 'doubled', 'disorder'], async (verdict) => runNaive(seed, verdict)),
};

export const scenarioNames: readonly string[] = Object.keys(scenarios);

export async function runLongScenario(name: string, options: LongOptions): Promise<Outcome> {
  const run = scenarios[name];
  if (run === undefined) throw new Error(`there is no scenario ${name}`);
  return await run(options);
}
