import { AppError } from '@concierge/contract';
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
  return command;
}
