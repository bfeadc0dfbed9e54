import { argv, stdout } from 'node:process';
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

for (let time = 1; time <= Number(times); time += 1) {
  await settings.update({ agents: { [agent]: { maxTurns: time } } });
  stdout.write(`${String(time)}\n`);
}
