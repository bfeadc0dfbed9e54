// The long runs: `npm run chaos` for all of them, `npm run chaos -- --scenario chaos --turns 5000 --kills 200 --seed 7`
// for one.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runLongScenario, scenarioNames, type LongOptions } from './long-runs.ts';

const { values: given } = parseArgs({
  options: {
    /** All of them when left out. */
    scenario: { type: 'string', multiple: true },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    /** Another checkout, with its packages installed, whose services are put to the test by this checkout's rig. */
    tree: { type: 'string' },
    turns: { type: 'string' },
    sessions: { type: 'string', default: '60' },
    tenants: { type: 'string', default: '5' },
    kills: { type: 'string' },
    stops: { type: 'string', default: '20' },
    'redis-kills': { type: 'string', default: '5' },
    flushes: { type: 'string', default: '5' },
    gateways: { type: 'string', default: '3' },
    workers: { type: 'string', default: '4' },
    /** Contacts that write in each round of the scenario `order`. */
    people: { type: 'string', default: '50' },
    /** How many of the 16 steps of the scenario `clocks`, chosen by the seed. */
    steps: { type: 'string', default: '16' },
    /** How often a scenario repeats what it does: rounds of faults, of poison, of hangs. */
    rounds: { type: 'string' },
    /** Seconds over which turns and faults are spread: 600, or 120 in the scenario cron. */
    seconds: { type: 'string' },
    /** Sandbox of the scenario `sandbox`: docker or bubblewrap. */
    sandbox: { type: 'string', default: 'docker' },
    keep: { type: 'boolean', default: false },
  },
});

const readNumber = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));

const options: LongOptions = {
  seed: Number(given.seed),
  tree: given.tree === undefined ? undefined : resolve(given.tree),
  turns: readNumber(given.turns),
  sessions: Number(given.sessions),
  tenants: Number(given.tenants),
  kills: readNumber(given.kills),
  stops: Number(given.stops),
  redisKills: Number(given['redis-kills']),
  flushes: Number(given.flushes),
  gateways: Number(given.gateways),
  workers: Number(given.workers),
  people: Number(given.people),
  steps: Number(given.steps),
  rounds: readNumber(given.rounds),
  seconds: readNumber(given.seconds),
  sandbox: given.sandbox === 'bubblewrap' ? 'bubblewrap' : 'docker',
  keep: given.keep,
};

const wanted = given.scenario ?? scenarioNames;
const unknown = wanted.filter((name) => !scenarioNames.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`there is no scenario ${unknown.join(', ')}: ${scenarioNames.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const rows: string[] = [];
  for (const name of wanted) {
    const startedMs = Date.now();
    process.stdout.write(`\n== ${name}, seed ${String(options.seed)}${options.tree === undefined ? '' : `, ${options.tree}`} ==\n\n`);
    const { findings, text } = await runLongScenario(name, options);
    process.stdout.write(`${text}\n`);
    rows.push(`${name.padEnd(12)} ${String(findings).padStart(5)} findings, ${String(Math.round((Date.now() - startedMs) / 1000))} s`);
    if (findings > 0) process.exitCode = 1;
  }
  process.stdout.write(`\n== all ==\n\n${rows.join('\n')}\n`);
}
