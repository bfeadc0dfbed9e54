import { AppError, type AuditEntry, limits } from '@concierge/contract';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

function describeActor({ by }: AuditEntry): string {
  return by.kind === 'key' ? `key ${by.keyId}` : `operator (${by.via})`;
}

async function list({ deployment, answer }: CommandContext, tenantId: string | undefined, given: string): Promise<void> {
  const limit = Number(given);
  if (!Number.isSafeInteger(limit) || limit < 1) throw new AppError('invalid_request', `${given} is not a number of entries.`);
  const log = tenantId === undefined ? (await deployment.tenants()).audit : (await deployment.scope(tenantId)).audit;
  const { entries } = await log.page({ limit });
  const rows = entries.map((entry) => [entry.at, describeActor(entry), entry.act, entry.tenantId ?? '', entry.target ?? '']);
  answer({ json: entries, text: table(['WHEN', 'WHO', 'WHAT', 'TENANT', 'OF IT'], rows) });
}

/** `concierge audit [tenant]` */
export function auditCommand(context: CommandContext): Command {
  return new Command('audit')
    .argument('[tenant]', 'what was changed in it, by its keys and by operators; what operators did anywhere, without one')
    .option('--limit <number>', 'newest entries', String(limits.sessionsListMax))
    .action(async (tenantId: string | undefined, { limit }: { limit: string }) => await list(context, tenantId, limit));
}
