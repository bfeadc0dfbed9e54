// npm run bench [-- name …] [--json file]: every figure beside baselines measured in the same run.
import { writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureNames, runMeasures } from './measures.ts';
import { renderTable } from './row.ts';

const { values: flags, positionals: names } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' } } });
const unknown = names.filter((name) => !measureNames.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`there is no measure ${unknown.join(', ')}: ${measureNames.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const startedMs = performance.now();
  // Another process on the cores changes every ratio: a baseline of few steps suffers less than a product of many.
  const busyBefore = loadavg()[0] ?? 0;
  const rows = await runMeasures(names, {
    begin: (name) => process.stderr.write(`${name} …\n`),
    failed: (name, error) => {
      process.stderr.write(`${name} could not be measured: ${String(error)}\n`);
      process.exitCode = 1;
    },
  });
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stdout.write(
    `\n${renderTable(rows)}\n\nmeasured in ${String(seconds)} s on ${String(availableParallelism())} cores; load average before: ${busyBefore.toFixed(1)}\n`,
  );
  if (flags.json !== undefined) await writeFile(flags.json, JSON.stringify({ at: new Date().toISOString(), rows }, null, 2));
}
