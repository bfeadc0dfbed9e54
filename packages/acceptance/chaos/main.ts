// The long run: npm run chaos -- --turns 5000 --kills 200 --seed 7
import { parseArgs } from 'node:util';
import { renderReport } from './auditor.ts';
import { runCronKills } from './cron/cron-kills.ts';
import { runSandboxKills } from './sandbox/sandbox-kills.ts';
import { runWebhookKills } from './webhooks/webhook-kills.ts';
import { runChaos, runFailPoints, runNaive, runRollingRestart, type Verdict } from './scenarios.ts';

const { values: given } = parseArgs({
  options: {
    scenario: { type: 'string', default: 'chaos' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    turns: { type: 'string', default: '5000' },
    sessions: { type: 'string', default: '60' },
    tenants: { type: 'string', default: '5' },
    /** 200 in the scenario chaos, 50 in the scenario sandbox. */
    kills: { type: 'string' },
    stops: { type: 'string', default: '20' },
    'redis-kills': { type: 'string', default: '5' },
    flushes: { type: 'string', default: '5' },
    gateways: { type: 'string', default: '3' },
    workers: { type: 'string', default: '4' },
    /** Seconds over which turns and faults are spread: 600, or 120 in the scenario cron. */
    seconds: { type: 'string' },
    /** Of the scenario sandbox: docker or bubblewrap. */
    sandbox: { type: 'string', default: 'docker' },
    keep: { type: 'boolean', default: false },
  },
});

const seed = Number(given.seed);
const givenKills = given.kills === undefined ? undefined : Number(given.kills);
const CRON_SECONDS = 120;
const overMs = Number(given.seconds ?? '600') * 1000;

const verdict: Verdict = async (report, rig) => {
  process.stdout.write(`${given.scenario}, seed ${String(seed)}\n\n${renderReport(report)}\n`);
  if (report.findings.length > 0 || given.keep) process.stdout.write(`\n${await rig.explain(report)}\n`);
  process.exitCode = report.findings.length > 0 ? 1 : 0;
};

switch (given.scenario) {
  case 'failpoints': {
    await runFailPoints(seed, verdict);
    break;
  }
  case 'rolling': {
    await runRollingRestart(seed, verdict);
    break;
  }
  case 'naive': {
    await runNaive(seed, verdict);
    break;
  }
  case 'sandbox': {
    const sandbox = given.sandbox === 'bubblewrap' ? 'bubblewrap' : 'docker';
    const kills = givenKills ?? 50;
    const { ends, left } = await runSandboxKills({ sandbox, kills });
    process.stdout.write(`${sandbox}, ${String(kills)} kills: ${JSON.stringify({ ends, left }, null, 2)}\n`);
    process.exitCode = left.length > 0 || Object.keys(ends).length > 1 ? 1 : 0;
    break;
  }
  case 'cron': {
    const over = given.seconds === undefined ? CRON_SECONDS : Number(given.seconds);
    const report = await runCronKills({ seed, schedules: 40, overMs: over * 1000, flushes: Number(given.flushes) });
    process.stdout.write(`cron, seed ${String(seed)}: ${JSON.stringify(report, null, 2)}\n`);
    process.exitCode = report.findings.length > 0 ? 1 : 0;
    break;
  }
  case 'webhooks': {
    const report = await runWebhookKills({
      seed,
      messages: Number(given.turns),
      people: 50,
      kills: givenKills ?? 60,
      flushes: Number(given.flushes),
    });
    process.stdout.write(`webhooks, seed ${String(seed)}: ${JSON.stringify(report, null, 2)}\n`);
    process.exitCode = report.findings.length > 0 ? 1 : 0;
    break;
  }
  case 'chaos': {
    const load = { turns: Number(given.turns), conversations: Number(given.sessions), tenants: Number(given.tenants), overMs, burst: 3 };
    const faults = {
      kills: givenKills ?? 200,
      stops: Number(given.stops),
      stopMs: 11_000,
      redisKills: Number(given['redis-kills']),
      flushes: Number(given.flushes),
      overMs,
    };
    await runChaos(
      { seed, load, faults, gateways: Number(given.gateways), workers: Number(given.workers), deadlineMs: overMs * 2 + 120_000 },
      verdict,
    );
    break;
  }
  default: {
    process.stderr.write(`there is no scenario ${given.scenario}: chaos, failpoints, rolling, cron, sandbox, webhooks or naive\n`);
    process.exitCode = 2;
  }
}
