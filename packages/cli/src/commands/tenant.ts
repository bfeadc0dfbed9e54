import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { AppError, TenantPlan } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TenantRemovalOptions } from '@concierge/turn';
import { Command, Option } from 'commander';
import { facts, table, type CommandContext } from '../answer.ts';
import type { Deployment } from '../deployment.ts';
import { allScopes } from './key.ts';

interface TenantFacts {
  readonly tenantId: string;
  readonly plan: string;
  readonly name: string | null;
  readonly suspended: boolean;
  /** What is wrong with tenant.json; null when nothing is. */
  readonly problem: string | null;
}

async function readFacts(scope: TenantScope): Promise<TenantFacts> {
  const { plan, name, suspended } = await scope.settings();
  return { tenantId: scope.tenantId, plan, name: name ?? null, suspended: suspended === true, problem: scope.settingsProblem() };
}

function describe({ suspended, problem }: TenantFacts): string {
  return [...(suspended ? ['suspended'] : ['active']), ...(problem === null ? [] : [`tenant.json: ${problem}`])].join(', ');
}

async function createKeys(scope: TenantScope): Promise<{ readonly admin: string; readonly cs: string }> {
  const admin = await scope.keys.create({ label: 'admin', scopes: ['admin'] }, allScopes);
  const cs = await scope.keys.create({ label: 'cs', scopes: ['cs'] }, allScopes);
  return { admin: admin.key, cs: cs.key };
}

async function create({ deployment, answer }: CommandContext, id: string, plan: string): Promise<void> {
  const scope = await (await deployment.tenants()).create(id, { plan: TenantPlan.parse(plan) });
  const keys = await createKeys(scope);
  answer({
    json: { tenantId: id, keys },
    text: facts({ tenant: id, 'admin key': keys.admin, 'cs key': keys.cs, note: 'the keys are shown this once' }),
  });
}

async function list({ deployment, answer }: CommandContext): Promise<void> {
  const tenants = await deployment.tenants();
  const found: TenantFacts[] = [];
  for (const id of await tenants.list()) found.push(await readFacts(await tenants.open(id)));
  const rows = found.map((tenant) => [tenant.tenantId, tenant.plan, describe(tenant), tenant.name ?? '']);
  answer({
    json: found,
    text: found.length === 0 ? 'There is no tenant yet: concierge tenant create <id>' : table(['TENANT', 'PLAN', 'STATE', 'NAME'], rows),
  });
}

async function show({ deployment, answer }: CommandContext, id: string): Promise<void> {
  const scope = await deployment.scope(id);
  const [tenant, settings, skills] = [await readFacts(scope), await scope.settings(), await scope.skills.scan()];
  const keys = await scope.keys.list();
  const counts = {
    activeKeys: keys.filter(({ revokedAt }) => revokedAt === null).length,
    skills: skills.valid.length,
    waitingTurns: (await scope.inbox.list()).length,
  };
  const json = { ...tenant, folder: scope.root, settings, ...counts };
  const text = {
    tenant: id,
    plan: settings.plan,
    state: describe(tenant),
    folder: scope.root,
    'active keys': String(counts.activeKeys),
    skills: String(counts.skills),
    'turns not yet answered': String(counts.waitingTurns),
  };
  answer({ json, text: facts(text) });
}

async function setSuspended({ deployment, answer }: CommandContext, id: string, suspended: boolean): Promise<void> {
  await deployment.scope(id);
  await (await deployment.tenants()).setSuspended(id, suspended);
  answer({ json: { tenantId: id, suspended }, text: `${id} is ${suspended ? 'suspended' : 'active'}.` });
}

/** Only a user at a terminal is asked; a program passes the option. */
async function confirm(id: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const typed = await terminal.question(`This removes every file of ${id} for good. Type its id to go on: `);
  terminal.close();
  if (typed !== id) throw new AppError('invalid_request', 'Nothing was removed.');
}

async function remove(
  { deployment, answer }: CommandContext,
  id: string,
  { yes, json }: { readonly yes?: true; readonly json?: true },
): Promise<void> {
  await deployment.scope(id);
  if (yes !== true && json !== true && process.stdin.isTTY) await confirm(id);
  const notes = await removeFrom(deployment, id);
  answer({ json: { tenantId: id, deleted: true, notes }, text: [`${id} is removed.`, ...notes].join('\n') });
}

/** What was not done as it should be. */
async function removeFrom(deployment: Deployment, id: string): Promise<string[]> {
  const tenants = await deployment.tenants();
  const running = await runningParts(deployment);
  if (running === undefined) {
    await tenants.delete(id);
    return ['Redis does not answer: no turn was stopped, and what Redis still has of them is kept until it expires, within a day.'];
  }
  const { removeTenant } = await import('@concierge/turn');
  const { stillRunning } = await removeTenant({ tenants, ...running }, id);
  return stillRunning === 0 ? [] : [`${String(stillRunning)} turns did not stop in time: what they still write is lost.`];
}

/** undefined where nothing runs. */
async function runningParts(deployment: Deployment): Promise<Pick<TenantRemovalOptions, 'turns' | 'redis'> | undefined> {
  try {
    return { turns: await deployment.turns(), redis: await deployment.redis() };
  } catch (error) {
    if (error instanceof AppError && error.code === 'overloaded') return undefined;
    throw error;
  }
}

async function exportTo({ deployment, answer }: CommandContext, id: string, file: string): Promise<void> {
  const path = resolve(file);
  const { exportTenant } = await import('../tenant-archive.ts');
  const scope = await deployment.scope(id);
  await deployment.fileAccepted(scope);
  const report = await exportTenant(scope, path);
  const { files, leftOut, cutShort } = report;
  const notes = [
    ...(leftOut === 0 ? [] : [`Left out: ${String(leftOut)} links, special files, files with a second name, or nested more than 64 deep.`]),
    ...(cutShort === 0
      ? []
      : [`Changed while they were read: ${String(cutShort)} files. Export again when nothing runs (tenant suspend).`]),
  ];
  answer({ json: { ...report, file: path }, text: [`${id}: ${String(files)} files in ${path}.`, ...notes].join('\n') });
}

/** Keys stay valid under the same id and KEY_SECRET; under another id the tenant gets new ones. */
async function importFrom({ deployment, answer }: CommandContext, file: string, newId: string | undefined): Promise<void> {
  const tenants = await deployment.tenants();
  const { importTenant } = await import('../tenant-archive.ts');
  const { tenantId, files } = await importTenant({ file: resolve(file), tenantsFolder: join(deployment.config.dataDir, 'tenants'), newId });
  const scope = await tenants.open(tenantId);
  await scope.reindex();
  const keys = (await scope.keys.list()).length === 0 ? await createKeys(scope) : null;
  const shown = keys === null ? {} : { 'admin key': keys.admin, 'cs key': keys.cs };
  const notes = await importNotes(scope, newId);
  answer({
    json: { tenantId, files, ...(keys === null ? {} : { keys }), notes },
    text: [facts({ tenant: tenantId, files: String(files), ...shown }), ...notes].join('\n'),
  });
}

/** What does not work after it as it did before, or works twice. */
async function importNotes(scope: TenantScope, newId: string | undefined): Promise<string[]> {
  const notes: string[] = [];
  const broken = (await scope.channels.list()).filter(({ state }) => state === 'broken').map(({ app }) => app);
  const toWebhooks = (await scope.schedules.list()).schedules.filter(({ deliver }) => deliver !== null && 'webhook' in deliver).length;
  const active = (await scope.schedules.list()).schedules.filter(({ enabled }) => enabled).length;
  if (newId !== undefined) {
    notes.push(
      'Channels are not connected, and messages that waited to be sent and event endpoints stayed behind: all of them belong to the other id. Connect the channels anew. The web widget, if there was one, is to be set up anew, too.',
    );
    if (active > 0)
      notes.push(
        `${String(active)} schedules came along and are enabled, as those of the other tenant are: see concierge cron list ${scope.tenantId}.`,
      );
  }
  if (newId !== undefined && toWebhooks > 0)
    notes.push(
      `${String(toWebhooks)} schedules send their replies to webhooks: make event endpoints with these URLs (concierge event-endpoint add).`,
    );
  if (broken.length > 0)
    notes.push(
      `The credentials of ${broken.join(', ')} cannot be opened with this SECRETS_KEY: use the one they were sealed with, or connect anew.`,
    );
  return notes;
}

/** `concierge tenant …` */
export function tenantCommand(context: CommandContext): Command {
  const command = new Command('tenant');
  command
    .command('create <id>')
    .description('make a tenant with starter files, an admin and a cs key')
    .addOption(new Option('--plan <plan>', 'what it may use').choices(TenantPlan.options).default('standard'))
    .action(async (id: string, { plan }: { plan: string }) => await create(context, id, plan));
  command
    .command('list')
    .description('all tenants')
    .action(async () => await list(context));
  command
    .command('show <id>')
    .description('one tenant')
    .action(async (id: string) => await show(context, id));
  command
    .command('suspend <id>')
    .description('refuse its keys; accepted turns wait')
    .action(async (id: string) => await setSuspended(context, id, true));
  command
    .command('resume <id>')
    .description('end a suspension')
    .action(async (id: string) => await setSuspended(context, id, false));
  command
    .command('export <id> <file>')
    .description('write everything of it into a .tar.gz')
    .action(async (id: string, file: string) => await exportTo(context, id, file));
  command
    .command('import <file>')
    .description('make a tenant from such a file')
    .option('--as <id>', 'under another id; it then gets new keys, and its channels are to be connected anew')
    .action(async (file: string, { as }: { as?: string }) => await importFrom(context, file, as));
  command
    .command('delete <id>')
    .description('remove a tenant and everything of it')
    .option('--yes', 'do not ask')
    .action(async (id: string, options: { yes?: true; json?: true }) => await remove(context, id, options));
  return command;
}
