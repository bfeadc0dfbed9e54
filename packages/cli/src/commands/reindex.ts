import { AppError, type Reindexed, type TenantDrift } from '@concierge/contract';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

interface ReindexOptions {
  readonly all?: true;
  readonly dryRun?: true;
}

function describe({ tenantId, drifted, drift }: TenantDrift): string[][] {
  if (!drifted) return [[tenantId, 'everything', '0', '0', '0']];
  return Object.entries(drift).map(([name, { added, changed, removed }]) => [
    tenantId,
    name,
    String(added),
    String(changed),
    String(removed),
  ]);
}

async function reindex({ deployment, answer }: CommandContext, tenant: string | undefined, { all, dryRun }: ReindexOptions): Promise<void> {
  if ((tenant === undefined) === (all !== true)) throw new AppError('invalid_request', 'Name a tenant, or give --all.');
  const reindexing = await deployment.reindexing();
  const reports: TenantDrift[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const step: Reindexed = await reindexing.reindexSome({ tenant, dryRun: dryRun === true, cursor });
    reports.push(...step.tenants);
    cursor = step.nextCursor;
  }
  answer({
    json: all === true ? reports : reports[0],
    text: table(['TENANT', 'IN THE INDEX', 'ADDED', 'CHANGED', 'REMOVED'], reports.flatMap(describe)),
  });
}

/** `concierge reindex` */
export function reindexCommand(context: CommandContext): Command {
  return new Command('reindex')
    .argument('[tenant]', 'its id')
    .option('--all', 'every tenant')
    .option('--dry-run', 'compare, and change nothing')
    .action(async (tenant: string | undefined, options: ReindexOptions) => await reindex(context, tenant, options));
}
