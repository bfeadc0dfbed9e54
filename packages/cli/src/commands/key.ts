import { AppError, KeyScope, type KeyView } from '@concierge/contract';
import { Command } from 'commander';
import { facts, table, type CommandContext } from '../answer.ts';

const allScopes: readonly KeyScope[] = KeyScope.options;

interface CreateOptions {
  readonly scope: readonly string[];
  readonly label?: string;
  readonly expires?: string;
}

function parseScopes(names: readonly string[]): KeyScope[] {
  return names.map((name) => {
    const scope = KeyScope.safeParse(name);
    if (!scope.success) throw new AppError('invalid_request', `${name} is not a scope: ${allScopes.join(', ')}.`);
    return scope.data;
  });
}

function parseTime(text: string): string {
  const at = new Date(text);
  if (Number.isNaN(at.getTime()))
    throw new AppError('invalid_request', `${text} is not a time such as 2027-01-31 or 2027-01-31T12:00:00Z.`);
  return at.toISOString();
}

async function create({ deployment, answer }: CommandContext, tenantId: string, { scope, label, expires }: CreateOptions): Promise<void> {
  const expiresAt = expires === undefined ? null : parseTime(expires);
  const request = { scopes: parseScopes(scope), label: label ?? '', expiresAt };
  const created = await (await deployment.tenantOperations()).createKey(tenantId, request);
  answer({
    json: created,
    text: facts({ id: created.id, key: created.key, scopes: created.scopes.join(', '), note: 'the key is shown this once' }),
  });
}

function describeKeyState({ revokedAt, expiresAt }: KeyView): string {
  if (revokedAt !== null) return `revoked ${revokedAt}`;
  if (expiresAt === null) return 'active';
  return `${Date.parse(expiresAt) < Date.now() ? 'expired' : 'active until'} ${expiresAt}`;
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const views = await (await deployment.tenantOperations()).listKeys(tenantId);
  const rows = views.map((view) => [view.id, view.scopes.join(','), view.label, describeKeyState(view), view.lastUsedAt ?? 'never used']);
  answer({ json: views, text: table(['ID', 'SCOPES', 'LABEL', 'STATE', 'LAST USED'], rows) });
}

async function revoke({ deployment, answer }: CommandContext, tenantId: string, keyId: string): Promise<void> {
  const view = await (await deployment.tenantOperations()).revokeKey(tenantId, keyId);
  answer({ json: view, text: `${keyId} is revoked: every gateway refuses it within a second.` });
}

async function rotate({ deployment, answer }: CommandContext, tenantId: string, keyId: string): Promise<void> {
  const created = await (await deployment.tenantOperations()).rotateKey(tenantId, keyId);
  answer({
    json: created,
    text: facts({
      id: created.id,
      key: created.key,
      scopes: created.scopes.join(', '),
      note: `${keyId} is revoked; the new key is shown this once`,
    }),
  });
}

/** Takes `--scope a --scope b` and `--scope a,b`. */
function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...value.split(',').map((name) => name.trim())];
}

/** `concierge key …` */
export function keyCommand(context: CommandContext): Command {
  const command = new Command('key');
  command
    .command('create <tenant>')
    .description('make a key; it is shown once')
    .requiredOption('--scope <scope>', `${allScopes.join(', ')}; several with commas or by repeating`, collect)
    .option('--label <text>', 'what it is for')
    .option('--expires <time>', 'when it stops working')
    .action(async (tenantId: string, options: CreateOptions) => await create(context, tenantId, options));
  command
    .command('list <tenant>')
    .description('all keys, without their secrets')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('revoke <tenant> <id>')
    .description('stop a key from working')
    .action(async (tenantId: string, keyId: string) => await revoke(context, tenantId, keyId));
  command
    .command('rotate <tenant> <id>')
    .description('replace a key by a new one with the same scopes')
    .action(async (tenantId: string, keyId: string) => await rotate(context, tenantId, keyId));
  return command;
}
