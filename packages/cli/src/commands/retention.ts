import { AppError, OperatedTenantPatch, parseInput, RetentionRule, type RetentionReport } from '@concierge/contract';
import { reportExpired } from '@concierge/tenant';
import { Command } from 'commander';
import { facts, type CommandContext } from '../answer.ts';

interface Options {
  readonly dryRun?: true;
}

/** `sessionsDays=365`, or `sessionsDays=none`. */
function parseDays(pair: string): readonly [string, number | null] {
  const [, name, value = ''] = /^(\w{1,32})=(\d{1,5}|none)$/u.exec(pair) ?? [];
  if (name === undefined) throw new AppError('invalid_request', `${pair} does not read <what>Days=<number>, or <what>Days=none.`);
  return [name, value === 'none' ? null : Number(value)];
}

function describe({ rule, sessions, history, uploads, hasMore }: RetentionReport): string {
  const days = Object.entries(rule).map(([name, value]) => `${name}=${String(value)}`);
  const sized = ({ count, bytes }: RetentionReport['uploads']): string => `${String(count)} (${String(bytes)} bytes)`;
  return facts({
    rule: days.length === 0 ? 'everything is kept' : days.join(' '),
    conversations: String(sessions.count),
    histories: sized(history),
    uploads: sized(uploads),
    ...(hasMore && { note: 'there are more than one look counts' }),
  });
}

async function run(
  { deployment, answer }: CommandContext,
  tenantId: string,
  { pairs, dryRun }: Options & { readonly pairs: readonly string[] },
): Promise<void> {
  const operations = await deployment.tenantOperations();
  const scope = await operations.open(tenantId);
  const patch = parseInput(OperatedTenantPatch, { retention: Object.fromEntries(pairs.map(parseDays)) }, 'This');
  if (pairs.length > 0 && dryRun !== true) await operations.update(tenantId, patch);
  const asked = { ...(await scope.settings()).retention, ...patch.retention };
  const rule = RetentionRule.parse(Object.fromEntries(Object.entries(asked).filter(([, days]) => days !== null)));
  const report = await reportExpired(scope, rule);
  answer({ json: report, text: describe(report) });
}

/** `concierge retention …` */
export function retentionCommand(context: CommandContext): Command {
  return new Command('retention')
    .argument('<tenant>')
    .argument('[rules...]', 'sessionsDays=365, historyDays, uploadsDays; =none keeps for ever. Without any, what the rule would remove now')
    .option('--dry-run', 'only say what such a rule would remove')
    .action(async (tenantId: string, pairs: readonly string[], options: Options) => await run(context, tenantId, { ...options, pairs }));
}
