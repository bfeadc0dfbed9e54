import { readConfig } from './config.ts';
import { run } from './run.ts';

// A reader that has seen enough (`| head`) goes: what the command does is done all the same.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await run(process.argv.slice(2), { readConfig, input: process.stdin, out: process.stdout, err: process.stderr });
