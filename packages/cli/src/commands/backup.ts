import { open } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError } from '@concierge/contract';
import type { BackupReport } from '@concierge/core/backup';
import { ConfigError } from '@concierge/runtime';
import { Command } from 'commander';
import { facts, type Answer, type CommandContext } from '../answer.ts';
import type { Deployment } from '../deployment.ts';

/** In DATA_DIR after `npm start`. */
const secretsFile = 'secrets.json';

interface BackupOptions {
  readonly withSecrets?: true;
}

async function backUpTo({ deployment, answer, streams }: CommandContext, file: string, { withSecrets }: BackupOptions): Promise<void> {
  const [{ backUp }, { saveArchive }] = [await import('@concierge/core/backup'), await import('@concierge/core/tar-archive')];
  const { dataDir, providersFile } = deployment.config;
  const tenants = await deployment.tenants();
  const providers = relative(dataDir, resolve(providersFile));
  const alsoFiles = withSecrets === true ? [secretsFile, ...(/^[^/.][^/]*$/u.test(providers) ? [providers] : [])] : [];
  const begin = async (): ReturnType<typeof backUp> => backUp({ dataDir, tenants, alsoFiles });
  if (file === '-') {
    const backup = await begin();
    await pipeline(backup.bytes, streams.out, { end: false });
    answer({ ...backupAnswer(deployment, backup.report(), 'the output'), isAside: true });
    return;
  }
  const path = resolve(file);
  answer(backupAnswer(deployment, await saveArchive(path, begin), path));
}

/** What belongs to it is named, and never copied unasked: who has the copy would have all keys. */
function backupAnswer({ config }: Deployment, report: BackupReport, where: string): Answer {
  const { beganAt, tenants, files, leftOut, cutShort, copied } = report;
  const keys = ['KEY_SECRET and SECRETS_KEY (from the environment, or secrets.json)', `the model providers (${config.providersFile})`];
  const text = facts({
    backup: where,
    'as of': beganAt,
    tenants: String(tenants),
    files: String(files),
    ...(copied.length === 0 ? {} : { with: copied.join(', ') }),
    ...(leftOut === 0
      ? {}
      : { 'left out': `${String(leftOut)} links, special files, files with a second name, or nested more than 64 deep` }),
    ...(cutShort === 0 ? {} : { 'cut short': `${String(cutShort)} files of tenants’ commands, which changed them meanwhile` }),
  });
  const notes =
    copied.length > 0 ? [] : [`Keep beside it, apart and safe: ${keys.join('; ')}. Without them keys and credentials are lost.`];
  return { json: { ...report, notes }, text: [text, ...notes].join('\n') };
}

async function restoreFrom({ deployment, answer, streams }: CommandContext, file: string): Promise<void> {
  const { restore } = await import('@concierge/core/backup');
  await assertRedisIsEmpty(deployment);
  const source = file === '-' ? streams.input : (await open(resolve(file))).createReadStream();
  const report = await restore(source, deployment.config.dataDir);
  const { beganAt, files, copied } = report;
  // Before the first start there is none, unless it came along: that is read by the next command.
  const isIndexed = deployment.config.keySecret !== undefined;
  for (const id of isIndexed ? report.tenants : []) await (await (await deployment.tenants()).find(id))?.reindex();
  answer({
    json: { ...report, isIndexed },
    text: facts({
      restored: beganAt,
      tenants: String(report.tenants.length),
      files: String(files),
      ...(copied.length === 0 ? {} : { with: copied.join(', ') }),
      note: isIndexed
        ? 'start the services: what was accepted and not answered goes on'
        : 'set KEY_SECRET and SECRETS_KEY, run concierge reindex --all, and start the services',
    }),
  });
}

/** What Redis still has is of another moment: it would take turns for ended that the files have as waiting. */
async function assertRedisIsEmpty(deployment: Deployment): Promise<void> {
  const { isEmptyRedis } = await import('@concierge/turn');
  try {
    if (await isEmptyRedis(await deployment.redis())) return;
  } catch (error) {
    if (error instanceof AppError && error.code === 'overloaded') return;
    // It has another number of slots, and an empty one has none.
    if (!(error instanceof ConfigError)) throw error;
  }
  throw new AppError('conflict', 'Redis is not empty: stop the services and empty it first (FLUSHDB), then restore.');
}

/** `concierge backup …` */
export function backupCommand(context: CommandContext): Command {
  return new Command('backup')
    .argument('<file>', 'a new .tar.gz; - for the output')
    .option('--with-secrets', 'put secrets.json and the providers file into it: who has it then has every key')
    .action(async (file: string, options: BackupOptions) => await backUpTo(context, file, options));
}

/** `concierge restore …` */
export function restoreCommand(context: CommandContext): Command {
  return new Command('restore')
    .argument('<file>', 'a backup; - for the input')
    .action(async (file: string) => await restoreFrom(context, file));
}
