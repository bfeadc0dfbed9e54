import { argv, stdout } from 'node:process';
import { AppError } from '@concierge/contract';
import { openIndex } from '@concierge/index';
import { Tenants } from '../src/tenants.ts';
import { silentLog } from './support.ts';

/** A separate process that keeps notes of so many characters for `acme`, all at once. Prints how many were taken. */
const [, , dataDir = '', name = '', notes = '', characters = ''] = argv;
const index = await openIndex({ databaseUrl: undefined, dataDir, log: silentLog });
const scope = await new Tenants({ dataDir, index, keySecret: 'a secret for tests', log: silentLog }).open('acme');

/** Another process that stands still with the lock is waited for, longer than a service would. */
async function keepNote(at: number): Promise<void> {
  for (;;) {
    try {
      await scope.files.writeText(`memory/${name}-${String(at)}.md`, 'x'.repeat(Number(characters)));
      return;
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'overloaded')) throw error;
    }
  }
}

const writes = Array.from({ length: Number(notes) }, async (_, at) => keepNote(at));
const outcomes = await Promise.allSettled(writes);
for (const outcome of outcomes) {
  if (outcome.status === 'rejected' && !(outcome.reason instanceof AppError && outcome.reason.code === 'memory_quota'))
    throw outcome.reason;
}
stdout.write(String(outcomes.filter(({ status }) => status === 'fulfilled').length));
await index.close();
