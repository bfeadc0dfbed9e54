import { AppError, codePoints, limits, type SavedAnswer, type Session } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';

const FOLDER = 'answers';
/** As many bytes as characters of a message may have. */
const answerMaxBytes = limits.messageMaxCharacters * 4;

/** What staff keeps for itself: notes in a conversation, who looks after it, and saved answers. */
export function staffHandlers(): Pick<Handlers, 'getSessionStaff' | 'addStaffNote' | 'removeStaffNote' | 'assignSession' | 'listAnswers'> {
  return {
    getSessionStaff: async ({ caller: { scope }, params }) => {
      const session = await mustLoad(scope, params.id);
      return { kind: 'answer', status: 200, json: await scope.staffNotes.read(session) };
    },
    addStaffNote: async ({ caller: { scope, key }, params, body: { text, author = null } }) => {
      const session = await mustLoad(scope, params.id);
      const { id, by, at } = await scope.staffNotes.add(session, { text, author, by: { kind: 'key', keyId: key.id } });
      return { kind: 'answer', status: 201, json: { id, text, author, by, at } };
    },
    removeStaffNote: async ({ caller: { scope }, params }) => {
      const session = await mustLoad(scope, params.id);
      if (!(await scope.staffNotes.remove(session, params.note))) throw new AppError('not_found', 'There is no such note.');
      return { kind: 'answer', status: 204 };
    },
    assignSession: async ({ caller: { scope, key }, params, body }) => {
      const session = await mustLoad(scope, params.id);
      await scope.staffNotes.assign(session, body.name, { kind: 'key', keyId: key.id });
      return { kind: 'answer', status: 200, json: await scope.staffNotes.read(session) };
    },
    listAnswers: async ({ caller: { scope } }) => ({ kind: 'answer', status: 200, json: await readAnswers(scope) }),
  };
}

/** @throws AppError not_found */
async function mustLoad(scope: TenantScope, sessionId: string): Promise<Session> {
  const session = await scope.sessions.load(sessionId);
  if (session === undefined) throw new AppError('not_found', 'There is no such session.');
  return session;
}

/** What cannot be read, or is no text, is no answer; the tenant's own commands may write there. */
async function readAnswers({ files }: TenantScope): Promise<SavedAnswer[]> {
  const entries = await unlessRefused(files.list(FOLDER));
  const names = (entries ?? []).filter(({ kind, path }) => kind === 'file' && path.endsWith('.md')).map(({ path }) => path);
  const answers: SavedAnswer[] = [];
  for (const path of names.toSorted()) {
    if (answers.length === limits.savedAnswersMax) break;
    const text = (await unlessRefused(files.readText(path, { maxBytes: answerMaxBytes })))?.text.trim() ?? '';
    if (text === '' || codePoints(text) > limits.messageMaxCharacters) continue;
    answers.push({ name: path.slice(`${FOLDER}/`.length, -'.md'.length), text });
  }
  return answers;
}

async function unlessRefused<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof AppError) return undefined;
    throw error;
  });
}
