import { readConfig } from './config.ts';
import { run } from './run.ts';

process.exitCode = await run(process.argv.slice(2), { readConfig, input: process.stdin, out: process.stdout, err: process.stderr });
