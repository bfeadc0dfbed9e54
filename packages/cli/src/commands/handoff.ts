import { AppError, HandoffReason, limits, MessageText, type HandoffState, type WaitingHandoff } from '@concierge/contract';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

const operator = { kind: 'operator' } as const;
const LAST_WORDS_CHARACTERS = 60;

interface TakeOptions {
  readonly reason: string;
  readonly hours?: string;
  readonly notify?: true;
}

function row({ sessionId, channel, title, since, until, reason, lastMessage }: WaitingHandoff): string[] {
  const last =
    lastMessage === null ? '' : `${lastMessage.from}: ${lastMessage.text.replaceAll(/\s+/gu, ' ').slice(0, LAST_WORDS_CHARACTERS)}`;
  return [sessionId, channel ?? '', since, until ?? 'until resumed', title ?? '', reason, last];
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const scope = await deployment.scope(tenantId);
  const { items } = await (await deployment.handoffRequests()).waiting(scope, limits.sessionsListMax);
  const { broken } = await scope.handoffs.paused();
  const head = ['SESSION', 'CHANNEL', 'SINCE', 'UNTIL', 'TITLE', 'WHY', 'LAST WORDS'];
  const text = items.length === 0 ? 'No conversation waits for staff.' : table(head, items.map(row));
  const damaged = broken.map((id) => `${id} is paused, and the file with the reason is damaged; resume clears it.`);
  answer({ json: items, text: [text, ...damaged].join('\n'), failed: broken.length > 0 });
}

async function take({ deployment, answer }: CommandContext, at: { tenantId: string; id: string }, options: TakeOptions): Promise<void> {
  const scope = await deployment.scope(at.tenantId);
  const reason = HandoffReason.safeParse(options.reason);
  if (!reason.success)
    throw new AppError('invalid_request', `--reason takes 1 to ${String(limits.handoffReasonMaxCharacters)} characters.`);
  const hours = options.hours === undefined ? undefined : Number(options.hours);
  if (hours !== undefined && !Number.isFinite(hours)) throw new AppError('invalid_request', '--hours must be a number.');
  const wish = { reason: reason.data, hours, by: operator, notify: options.notify === true };
  const { view, isNew } = await (await deployment.handoffRequests()).take(scope, at.id, wish);
  const until = view.until === null ? 'until it is resumed' : `until ${view.until}`;
  answer({ json: view, text: isNew ? `${at.id} is yours ${until}.` : `${at.id} was handed over already, ${until}: ${view.reason}` });
}

async function resume({ deployment, answer }: CommandContext, tenantId: string, id: string): Promise<void> {
  const scope = await deployment.scope(tenantId);
  const desk = await deployment.handoffRequests();
  const outcome = await desk.giveBack(scope, id, operator);
  const state: HandoffState = await desk.readState(scope, id);
  const text = outcome === 'resumed' ? `The agent has ${id} again, from the next message on.` : `The agent has ${id} already.`;
  answer({ json: state, text });
}

async function say({ deployment, answer }: CommandContext, at: { tenantId: string; id: string }, text: string): Promise<void> {
  const scope = await deployment.scope(at.tenantId);
  const words = MessageText.safeParse(text);
  if (!words.success) throw new AppError('invalid_request', `An answer has 1 to ${String(limits.messageMaxCharacters)} characters.`);
  const said = { text: words.data, by: operator, dedupeId: null, keyId: null };
  const { turnId, sessionId } = await (await deployment.handoffRequests()).answer(scope, at.id, said);
  answer({ json: { turnId, contact_id: sessionId }, text: `Accepted as ${turnId}.` });
}

/** `concierge handoff …` */
export function handoffCommand(context: CommandContext): Command {
  const command = new Command('handoff');
  command
    .command('list <tenant>')
    .description('those that wait for staff, the longest wait first')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('take <tenant> <session>')
    .description('take a conversation over: its agent is silent from here on')
    .option('--reason <text>', 'why, for later readers', 'Taken over by the operator.')
    .option('--hours <count>', "the agent goes on by itself after so many; the tenant's default when left out")
    .option('--notify', 'notify the contacts that the tenant names, too')
    .action(async (tenantId: string, id: string, options: TakeOptions) => await take(context, { tenantId, id }, options));
  command
    .command('answer <tenant> <session> <text>')
    .description("send a message in the agent's place")
    .action(async (tenantId: string, id: string, text: string) => await say(context, { tenantId, id }, text));
  command
    .command('resume <tenant> <session>')
    .description('give a conversation back to its agent')
    .action(async (tenantId: string, id: string) => await resume(context, tenantId, id));
  return command;
}
