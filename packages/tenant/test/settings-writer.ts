import { argv, stdout } from 'node:process';
import { AppError } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { armFailpoints } from '@concierge/runtime';
import { Settings } from '../src/settings/settings.ts';
import { silentLog } from './support.ts';

/**
 * A separate process that changes one setting so many times: `<name>-1`, `<name>-2`, … Prints each that was
 * acknowledged.
 */
const [, , root = '', agent = '', times = '', failpoints = ''] = argv;
armFailpoints(failpoints);
const settings = new Settings({ tenantId: 'acme', root, folders: new FolderSync(), log: silentLog });

/** Another process that stands still with the lock is waited for, longer than a service would. */
async function setMaxTurns(maxTurns: number): Promise<void> {
  for (;;) {
    try {
      await settings.update({ agents: { [agent]: { maxTurns } } });
      return;
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'conflict')) throw error;
    }
  }
}

for (let time = 1; time <= Number(times); time += 1) {
  await setMaxTurns(time);
  stdout.write(`${String(time)}\n`);
}
