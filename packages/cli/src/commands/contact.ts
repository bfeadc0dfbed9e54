import { setTimeout as wait } from 'node:timers/promises';
import { AppError, type ErasureReport } from '@concierge/contract';
import { toContactFolder, type NotesAboutContact } from '@concierge/tenant';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

const CONTACTS_AT_ONCE = 100;

/** The id that `list` shows, or what the contact itself is known by. */
function parseContactId(given: string): string {
  return /^[0-9a-f]{32}$/u.test(given) ? given : toContactFolder(given);
}

const nothingNoted = (given: string): AppError => new AppError('not_found', `Nothing is noted about ${given}.`);

function describe(contacts: readonly NotesAboutContact[]): string {
  const rows = contacts.map(({ id, sender, displayName, notes }) => [id, sender ?? '', displayName ?? '', String(notes.length)]);
  return rows.length === 0 ? 'Nothing is noted about any contact.' : table(['ID', 'SENDER', 'NAME', 'NOTES'], rows);
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const { contactNotes } = await deployment.scope(tenantId);
  const all: NotesAboutContact[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await contactNotes.list({ limit: CONTACTS_AT_ONCE, cursor });
    all.push(...page.contacts);
    cursor = page.nextCursor;
  }
  answer({ json: all, text: describe(all) });
}

async function show({ deployment, answer }: CommandContext, tenantId: string, given: string): Promise<void> {
  const { contactNotes } = await deployment.scope(tenantId);
  const id = parseContactId(given);
  const found = await contactNotes.find(id);
  if (found === undefined) throw nothingNoted(given);
  const notes = await Promise.all(found.notes.map(async ({ path }) => contactNotes.read(id, path)));
  const texts = notes.map(({ ref, text }) => ({ ref, text }));
  answer({ json: { ...found, notes: texts }, text: texts.map(({ ref, text }) => `== ${ref}\n${text.trimEnd()}`).join('\n') });
}

interface Forgotten {
  readonly tenantId: string;
  readonly given: string;
  readonly note: string | undefined;
}

async function forget({ deployment, answer }: CommandContext, { tenantId, given, note }: Forgotten): Promise<void> {
  const { contactNotes } = await deployment.scope(tenantId);
  const id = parseContactId(given);
  if (note !== undefined) await contactNotes.forget(id, note);
  else if (!(await contactNotes.forgetAll(id))) throw nothingNoted(given);
  await deployment.record(tenantId, note === undefined ? 'contact.forget' : 'note.forget', id);
  answer({ json: { id, forgotten: note ?? 'all' }, text: `${note ?? 'Everything'} that was noted about ${given} is gone.` });
}

/** Logs are written anew within two minutes; what takes longer is finished by the cron service. */
const ERASE_TIMEOUT_MS = 180_000;
const ASK_EVERY_MS = 1000;

function describeErasure({ state, waitsFor, erased, lookAt, hasMore }: ErasureReport): string {
  const counts = Object.entries(erased).map(([name, count]) => `${name}: ${String(count)}`);
  const waits = { turns: 'its turns have not ended', logs: 'records in write-ahead logs go within two minutes' };
  const places = lookAt.map(({ kind, ref, why }) => [kind, ref, why]);
  return [
    state === 'done' ? 'Everything of the contact is gone.' : 'It is not finished, and goes on by itself.',
    ...(waitsFor === null ? [] : [`Waits: ${waits[waitsFor]}.`]),
    counts.join(', '),
    ...(places.length === 0 ? [] : ['Left, and to be looked at:', table(['WHAT', 'WHERE', 'WHY'], places)]),
    ...(hasMore ? ['There are more places than these.'] : []),
  ].join('\n');
}

/** Waits for its end, and says how far it is where that takes too long. */
async function erase({ deployment, answer }: CommandContext, tenantId: string, given: string): Promise<void> {
  const operations = await deployment.tenantOperations();
  const { erasures, sessions } = await operations.open(tenantId);
  const isSession = /^[0-9a-f]{32}$/u.test(given) && (await sessions.load(given)) !== undefined;
  const whom = isSession ? { contact_id: given } : { sender: given };
  let report = await operations.eraseContact(tenantId, whom);
  for (const until = Date.now() + ERASE_TIMEOUT_MS; report.state === 'running' && Date.now() < until;) {
    await wait(ASK_EVERY_MS);
    await operations.continueErasure(tenantId, report.id);
    report = await erasures.report(report.id);
  }
  answer({ json: report, text: describeErasure(report), failed: report.state === 'running' });
}

/** `concierge contact …` */
export function contactCommand(context: CommandContext): Command {
  const command = new Command('contact');
  command
    .command('list <tenant>')
    .description('contacts that agents keep notes about')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('show <tenant> <contact>')
    .description('the notes about one of them, by its id or by what it writes under')
    .action(async (tenantId: string, given: string) => await show(context, tenantId, given));
  command
    .command('forget <tenant> <contact>')
    .description('remove the notes about one of them; conversations stay')
    .option('--note <ref>', 'only this one, as show names it')
    .action(async (tenantId: string, given: string, { note }: { note?: string }) => await forget(context, { tenantId, given, note }));
  command
    .command('erase <tenant> <contact>')
    .description('erase everything of one of them, by an address or by a conversation; see docs/data.md')
    .action(async (tenantId: string, given: string) => await erase(context, tenantId, given));
  return command;
}
