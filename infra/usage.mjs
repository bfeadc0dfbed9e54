// What each command of `npm run` takes, as it is printed for --help. The texts are also what is accepted: a flag that
// stands in no line is refused before anything is installed or started. Only what Node 20 brings may be imported here.
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const WRONG_USE = 2;

/** `rest`: what else may stand on the line: names, or also flags, which then are another program's to judge. */
const commands = {
  start: { call: 'npm start', does: 'Everything on this machine, from source. What can be set stands in docs/configuration.md.' },
  dev: {
    call: 'npm run dev -- [--inspect SERVICE]',
    does: 'As npm start; what changes is restarted, and types are checked beside.',
    flags: ['--inspect SERVICE[:PORT]   a debugger may attach to this service; more than once'],
  },
  test: {
    call: 'npm test -- [unit|integration|contract|e2e|chaos|stack|deploy|contract-cluster|contract-network] [PATH] [what Jest takes]',
    does: 'Without arguments: the checks, then all tests but the last two kinds. Else the tests of these kinds whose path contains PATH.',
    flags: ['--watch                    again after each change'],
    rest: 'flags',
  },
  check: { call: 'npm run check', does: 'Types, expressions, lint, format, dead code, architecture, layout.' },
  bench: {
    call: 'npm run bench -- [NAME …]',
    does: 'Speed, as ratios to baselines of the same run: all measures, or these.',
    flags: [
      '--runs N                   of several runs, for each line the one in the middle',
      '--json FILE                writes the rows there',
      '--svg FILE                 draws them there',
    ],
    rest: 'names',
  },
  chaos: {
    call: 'npm run chaos -- [--scenario NAME]',
    does: 'Long runs of the chaos tests: all scenarios, or these.',
    flags: [
      '--scenario NAME            more than once; a name that does not exist lists those that do',
      '--seed N                   repeats a run',
      '--tree PATH                another checkout, whose services are put to the test',
      '--turns N                  turns of a scenario',
      '--sessions N               conversations; 60',
      '--tenants N                5',
      '--gateways N               3',
      '--workers N                4',
      '--kills N                  kills of processes',
      '--stops N                  processes that stand still; 20',
      '--redis-kills N            5',
      '--flushes N                times that Redis is emptied; 5',
      '--people N                 contacts that write in each round of the scenario order; 50',
      '--steps N                  steps of the scenario clocks; 16',
      '--rounds N                 how often a scenario repeats what it does',
      '--seconds N                over which turns and faults are spread; 600, or 120 in the scenario cron',
      '--sandbox KIND             docker or bubblewrap, for the scenario sandbox; docker',
      '--keep                     leaves the folder of the run',
    ],
  },
  format: { call: 'npm run format', does: 'Puts every file into the house’s format.' },
  docs: { call: 'npm run docs', does: 'Writes the pages that are made from code, and llms.txt.' },
  images: {
    call: 'npm run images -- [--sbom FOLDER]',
    does: 'The images of docker-compose.yml that are built here: their sizes and what is in them. Needs a Docker engine.',
    flags: ['--sbom FOLDER              writes a CycloneDX document for each'],
  },
  prove: {
    call: 'npm run prove -- deploy [ROLLS]',
    does: 'The tests of a kind that take long, at their full length: for deploy ten rolling redeploys under load.',
    rest: 'names',
  },
  redeploy: {
    call: 'npm run redeploy -- [--all] [SERVICE …]',
    does: 'Replaces the containers of docker-compose.yml that have changed, one at a time, without a failed request.',
    flags: ['--all                      also those that have not changed'],
    rest: 'names',
  },
  reading: {
    call: 'npm run reading -- [--files] [--idle SECONDS]',
    does: 'What one turn runs through, measured, and whether docs/reading.md still names it.',
    flags: ['--files                    lists the files', '--idle SECONDS             how long the idle service is watched'],
  },
};

const describeUsage = ({ call, does, flags = [] }) => `Usage: ${call}\n\n${does}\n${flags.map((line) => `\n  ${line}`).join('')}\n`;

/** The flags of a usage as `parseArgs` wants them: what is followed by a word in capitals takes a value. */
function readFlags({ flags = [] }) {
  const options = flags.map((line) => {
    const [, name, value] = /^--([a-z-]+)( [A-Z])?/u.exec(line);
    return [name, value === undefined ? { type: 'boolean' } : { type: 'string', multiple: true }];
  });
  return { ...Object.fromEntries(options), help: { type: 'boolean', short: 'h' } };
}

/** What is to be printed instead of running the command, and with which exit code; undefined when it is to run. */
export function answerUsage(name, args) {
  const command = commands[name];
  if (command === undefined) return undefined;
  if (args.includes('--help') || args.includes('-h')) return { code: 0, text: describeUsage(command) };
  if (command.rest === 'flags') return undefined;
  try {
    parseArgs({ args, options: readFlags(command), allowPositionals: command.rest === 'names' });
    return undefined;
  } catch (error) {
    // Node adds how to write a positional argument that looks like a flag: one sentence is enough.
    const [problem] = error.message.split(/[.;] /u, 1);
    const asked = name === 'start' ? 'npm start' : `npm run ${name}`;
    return { code: WRONG_USE, text: `${name}: ${problem.replace(/\.$/u, '')}. ${asked} -- --help lists what it takes.\n` };
  }
}

/** Ends the process of the command in `scriptUrl` where it was called for its usage or in a wrong way. */
export function mindUsage(scriptUrl) {
  const answer = answerUsage(basename(fileURLToPath(scriptUrl), '.mjs'), process.argv.slice(2));
  if (answer === undefined) return;
  (answer.code === 0 ? process.stdout : process.stderr).write(answer.text);
  process.exit(answer.code);
}
