import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { pipeline } from 'node:stream/promises';
import {
  AppError,
  limits,
  OperatedTenantPatch,
  parseInput,
  TenantPlan,
  type AuditEntry,
  type CreatedTenant,
  type OperatedTenant,
  type OperatedTenantDetails,
} from '@concierge/contract';
import type { ExportReport } from '@concierge/core/tenant-archive';
import { Argument, Command, Option } from 'commander';
import { facts, table, type Answer, type CommandContext } from '../answer.ts';

function describe({ suspended, problem }: OperatedTenant): string {
  return [...(suspended ? ['suspended'] : ['active']), ...(problem === null ? [] : [`tenant.json: ${problem}`])].join(', ');
}

function keyFacts(keys: CreatedTenant['keys'] | undefined): Record<string, string> {
  return keys === undefined ? {} : { 'admin key': keys.admin, 'cs key': keys.cs };
}

async function create({ deployment, answer }: CommandContext, id: string, plan: string): Promise<void> {
  const made = await (await deployment.tenantOperations()).create({ id, plan: TenantPlan.parse(plan) });
  answer({ json: made, text: facts({ tenant: id, ...keyFacts(made.keys), note: 'the keys are shown this once' }) });
}

async function list({ deployment, answer }: CommandContext): Promise<void> {
  const found = await (await deployment.tenantOperations()).list();
  const rows = found.map((tenant) => [tenant.tenantId, tenant.plan, describe(tenant), tenant.name ?? '']);
  answer({
    json: found,
    text: found.length === 0 ? 'There is no tenant yet: concierge tenant create <id>' : table(['TENANT', 'PLAN', 'STATE', 'NAME'], rows),
  });
}

async function show({ deployment, answer }: CommandContext, id: string): Promise<void> {
  const operations = await deployment.tenantOperations();
  const [tenant, { root }] = [await operations.get(id), await operations.open(id)];
  const text = {
    tenant: id,
    plan: tenant.plan,
    limits: limitsText(tenant),
    state: describe(tenant),
    folder: root,
    'active keys': String(tenant.activeKeys),
    skills: String(tenant.skills),
    'turns not yet answered': String(tenant.waitingTurns),
  };
  answer({ json: { ...tenant, folder: root }, text: facts(text) });
}

function limitsText({ settings }: OperatedTenantDetails): string {
  const own = Object.entries(settings.limits ?? {}).map(([name, value]) => `${name}=${String(value)}`);
  return own.length === 0 ? "the plan's" : own.join(' ');
}

async function setSuspended({ deployment, answer }: CommandContext, id: string, suspended: boolean): Promise<void> {
  await (await deployment.tenantOperations()).setSuspended(id, suspended);
  answer({ json: { tenantId: id, suspended }, text: `${id} is ${suspended ? 'suspended' : 'active'}.` });
}

async function setPlan({ deployment, answer }: CommandContext, id: string, plan: string): Promise<void> {
  const changed = await (await deployment.tenantOperations()).update(id, { plan: TenantPlan.parse(plan) });
  answer({ json: changed, text: `${id} has the plan ${changed.plan}.` });
}

/** `name=500`, or `name=none` for that of the plan. */
async function setLimits({ deployment, answer }: CommandContext, id: string, pairs: readonly string[]): Promise<void> {
  const operations = await deployment.tenantOperations();
  const patch = parseInput(OperatedTenantPatch, { limits: Object.fromEntries(pairs.map(parseLimit)) }, 'This');
  const tenant = pairs.length === 0 ? await operations.get(id) : await operations.update(id, patch);
  answer({ json: tenant, text: facts({ tenant: id, limits: limitsText(tenant) }) });
}

function parseLimit(pair: string): readonly [string, number | string | null] {
  const [, name, value = ''] = /^(\w+)=(\S{1,64})$/u.exec(pair) ?? [];
  if (name === undefined) throw new AppError('invalid_request', `${pair} does not read <limit>=<value>, or <limit>=none.`);
  if (value === 'none') return [name, null];
  return [name, /^\d{1,16}(?:\.\d{1,9})?$/u.test(value) ? Number(value) : value];
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
  const operations = await deployment.tenantOperations();
  await operations.open(id);
  if (yes !== true && json !== true && process.stdin.isTTY) await confirm(id);
  const removed = await operations.delete(id);
  answer({ json: removed, text: [`${id} is removed.`, ...removed.notes].join('\n') });
}

async function exportTo({ deployment, answer, streams }: CommandContext, id: string, file: string): Promise<void> {
  const [operations, { saveArchive }] = [await deployment.tenantOperations(), await import('@concierge/core/tar-archive')];
  if (file === '-') {
    const exported = await operations.export(id);
    await pipeline(exported.bytes, streams.out, { end: false });
    answer({ ...exportAnswer(exported.report(), 'the output'), isAside: true });
    return;
  }
  const path = resolve(file);
  const report = await saveArchive(path, async () => operations.export(id));
  answer(exportAnswer({ ...report, file: path }, path));
}

function exportAnswer(report: ExportReport & { readonly file?: string }, where: string): Answer {
  const { tenantId, files, leftOut, cutShort } = report;
  const notes = [
    ...(leftOut === 0 ? [] : [`Left out: ${String(leftOut)} links, special files, files with a second name, or nested more than 64 deep.`]),
    ...(cutShort === 0
      ? []
      : [`Changed while they were read: ${String(cutShort)} files. Export again when nothing runs (tenant suspend).`]),
  ];
  return { json: report, text: [`${tenantId}: ${String(files)} files in ${where}.`, ...notes].join('\n') };
}

async function importFrom({ deployment, answer, streams }: CommandContext, file: string, newId: string | undefined): Promise<void> {
  const operations = await deployment.tenantOperations();
  const source = file === '-' ? streams.input : (await open(resolve(file))).createReadStream();
  const imported = await operations.import(source, newId);
  const { tenantId, files, keys, notes } = imported;
  answer({ json: imported, text: [facts({ tenant: tenantId, files: String(files), ...keyFacts(keys) }), ...notes].join('\n') });
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
    .command('plan <id>')
    .description(`give it another plan: ${TenantPlan.options.join(' or ')}`)
    .addArgument(new Argument('<plan>').choices(TenantPlan.options))
    .action(async (id: string, plan: string) => await setPlan(context, id, plan));
  command
    .command('limits <id> [limits...]')
    .description('give it limits of its own, as requestsPerHour=500; =none for those of its plan. Without any, show them')
    .action(async (id: string, pairs: readonly string[]) => await setLimits(context, id, pairs));
  command
    .command('export <id> <file>')
    .description('write everything of it into a .tar.gz; - for the output')
    .action(async (id: string, file: string) => await exportTo(context, id, file));
  command
    .command('import <file>')
    .description('make a tenant from such a file; - for the input')
    .option('--as <id>', 'under another id; it then gets new keys, and its channels are to be connected anew')
    .action(async (file: string, { as }: { as?: string }) => await importFrom(context, file, as));
  command
    .command('delete <id>')
    .description('remove a tenant and everything of it')
    .option('--yes', 'do not ask')
    .action(async (id: string, options: { yes?: true; json?: true }) => await remove(context, id, options));
  return command;
}

function describeActor({ by }: AuditEntry): string {
  return by.kind === 'key' ? `key ${by.keyId}` : `operator (${by.via})`;
}

function describeTurns({ turns }: AuditEntry): string {
  if (turns === undefined) return '';
  return turns === 1 ? '1 turn' : `${String(turns)} turns`;
}

async function listAudit({ deployment, answer }: CommandContext, tenantId: string | undefined, given: string): Promise<void> {
  const limit = Number(given);
  if (!Number.isSafeInteger(limit) || limit < 1) throw new AppError('invalid_request', `${given} is not a number of entries.`);
  const log = tenantId === undefined ? (await deployment.tenants()).audit : (await deployment.scope(tenantId)).audit;
  const { entries } = await log.page({ limit });
  const rows = entries.map((entry) => [
    entry.at,
    describeActor(entry),
    entry.act,
    entry.tenantId ?? '',
    [entry.target ?? describeTurns(entry), entry.reason ?? ''].filter((part) => part !== '').join(': '),
  ]);
  answer({ json: entries, text: table(['WHEN', 'WHO', 'WHAT', 'TENANT', 'OF IT'], rows) });
}

/** `concierge audit [tenant]` */
export function auditCommand(context: CommandContext): Command {
  return new Command('audit')
    .argument('[tenant]', 'what was changed in it, by its keys and by operators; what operators did anywhere, without one')
    .option('--limit <number>', 'newest entries', String(limits.sessionsListMax))
    .action(async (tenantId: string | undefined, { limit }: { limit: string }) => await listAudit(context, tenantId, limit));
}
