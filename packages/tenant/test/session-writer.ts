import { randomUUID } from 'node:crypto';
import { argv, stdout } from 'node:process';
import { FolderSync } from '@concierge/files';
import { armFailpoints } from '@concierge/runtime';
import { RevisionConflict } from '../src/sessions/publications.ts';
import { SessionCache, SessionStore } from '../src/sessions/session-store.ts';
import { newSession, silentLog, turnRecord } from './support.ts';

/**
 * A worker in a separate process: adds turns to a session until it is killed, or just one. Prints each turn when it is
 * published, `conflict` when another was first.
 */
const [, , folder = '', id = '', failpoints = '', often = 'always'] = argv;
armFailpoints(failpoints);
const store = new SessionStore({ tenantId: 'acme', folder, folders: new FolderSync(), cache: new SessionCache(), log: silentLog });

for (;;) {
  const turn = turnRecord(randomUUID());
  const session = (await store.load(id)) ?? newSession(id, { revision: 0 });
  try {
    await store.publish({ ...session, revision: session.revision + 1, turns: [...session.turns, turn] });
    stdout.write(`${turn.id}\n`);
    if (often === 'once') break;
  } catch (error) {
    if (!(error instanceof RevisionConflict)) throw error;
    stdout.write('conflict\n');
  }
}
