// npm run bench [-- name …] [--runs n] [--json file] [--svg file]: every figure beside baselines measured in the same
// run; of several runs, for each line the one in the middle.
import { writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureNames, runMeasures } from './measures.ts';
import { renderPlot } from './plot.ts';
import { renderTable, takeMedians, type Row } from './row.ts';

const { values: flags, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, svg: { type: 'string' }, runs: { type: 'string', default: '1' } },
});
const unknown = names.filter((name) => !measureNames.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`there is no measure ${unknown.join(', ')}: ${measureNames.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const startedMs = performance.now();
  // Another process on the cores changes every ratio: a baseline of few steps suffers less than a product of many.
  const busyBefore = loadavg()[0] ?? 0;
  const progress = {
    begin: (name: string) => process.stderr.write(`${name} …\n`),
    failed: (name: string, error: unknown) => {
      process.stderr.write(`${name} could not be measured: ${String(error)}\n`);
      process.exitCode = 1;
    },
  };
  const runs: Row[][] = [];
  for (let run = 0; run < Number(flags.runs); run += 1) runs.push(await runMeasures(names, progress));
  const rows = takeMedians(runs);
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stdout.write(
    `\n${renderTable(rows)}\n\nmeasured in ${String(seconds)} s on ${String(availableParallelism())} cores; load average before: ${busyBefore.toFixed(1)}\n`,
  );
  if (flags.json !== undefined) await writeFile(flags.json, JSON.stringify({ at: new Date().toISOString(), rows }, null, 2));
  if (flags.svg !== undefined) await writeFile(flags.svg, renderPlot(rows, `${names.join(', ')}: the run in the middle of ${flags.runs}`));
}
