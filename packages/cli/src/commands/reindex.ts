import { AppError } from '@concierge/contract';
import type { TenantDriftReport } from '@concierge/tenant';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

interface TenantDrift {
  readonly tenantId: string;
  /** The index differed from the files. */
  readonly drifted: boolean;
  readonly drift: TenantDriftReport;
}

function hasDrift(report: TenantDriftReport): boolean {
  return Object.values(report).some(({ added, changed, removed }) => added + changed + removed > 0);
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

async function reindex({ deployment, answer }: CommandContext, tenantId: string | undefined, all: boolean): Promise<void> {
  if ((tenantId === undefined) === !all) throw new AppError('invalid_request', 'Name a tenant, or give --all.');
  const ids = tenantId === undefined ? await (await deployment.tenants()).list() : [tenantId];
  const reports: TenantDrift[] = [];
  for (const id of ids) {
    const drift = await (await deployment.scope(id)).reindex();
    reports.push({ tenantId: id, drifted: hasDrift(drift), drift });
  }
  answer({
    json: all ? reports : reports[0],
    text: table(['TENANT', 'IN THE INDEX', 'ADDED', 'CHANGED', 'REMOVED'], reports.flatMap(describe)),
  });
}

/** `concierge reindex` */
export function reindexCommand(context: CommandContext): Command {
  return new Command('reindex')
    .argument('[tenant]', 'its id')
    .option('--all', 'every tenant')
    .action(async (tenantId: string | undefined, { all }: { all?: true }) => await reindex(context, tenantId, all === true));
}
