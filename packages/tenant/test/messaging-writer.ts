import { randomUUID } from 'node:crypto';
import { argv, stdout } from 'node:process';
import { FolderSync, RecordChanges } from '@concierge/files';
import { Channels } from '../src/channels/channels.ts';
import { Outbox } from '../src/outbox/outbox.ts';
import { Schedules } from '../src/schedules/schedules.ts';
import { TenantSecrets } from '../src/tenant-secrets.ts';
import { silentLog } from './support.ts';

/**
 * A separate process that writes to all messaging stores until it is killed. Prints the call of each message that was
 * accepted.
 */
const [, , root = '', scheduleId = ''] = argv;
const place = { tenantId: 'acme', folders: new FolderSync(), log: silentLog };
const outbox = new Outbox({ ...place, folder: `${root}/outbox` });
const channels = new Channels({
  ...place,
  folder: `${root}/channels`,
  secrets: new TenantSecrets('acme', 'a key for secrets'),
  changes: new RecordChanges({ root, tell: undefined }),
});
const schedules = new Schedules({
  ...place,
  folder: `${root}/cron`,
  plan: () => Promise.resolve('standard'),
  ensureEndpoint: () => Promise.resolve(),
  hasAgent: () => Promise.resolve(true),
});
const outbound = { kind: 'message', channel: 'channel_c', to: '4242', sessionId: '0'.repeat(32), agent: 'admin', turnId: 't_1' } as const;

for (;;) {
  const mark = randomUUID();
  await outbox.accept({ ...outbound, text: mark, callId: mark });
  stdout.write(`${mark}\n`);
  await Promise.all([
    schedules.update(scheduleId, { name: mark, message: `of ${mark}` }),
    channels.connect('channel_c', { botToken: mark, secretToken: mark }),
  ]);
}
