import { dynamicContext } from '@concierge/agent';
import type { Session, SessionMessage, UserMessage } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { toTitle } from './ended-session.ts';

/** Replaces the removed text, for the model as for people. */
const TAKEN_BACK = '[The sender took this message back.]';
/** Shorter words are found in a summary that has nothing to do with them. */
const QUOTED_MIN_CHARACTERS = 12;

/** The part of one turn in a message, its own or one that it shares with others. */
interface ReceivedMessage {
  readonly text: string;
  readonly uploads: readonly string[];
}

/**
 * Removes what a turn's user wrote from its conversation: out of its message, also where that was answered together
 * with others, out of what compaction has put away, out of the title and, where it is quoted, the summary. Files that
 * came with it are removed. What was answered stays. The history is on disk when this returns, the session is the
 * caller's to publish. Done twice it changes nothing more.
 */
export async function redactTurn(scope: TenantScope, session: Session, turnId: string): Promise<Session> {
  const archived = (await scope.sessions.conversation(session.id))?.messages ?? [];
  const said = [...archived, ...session.messages].map((message) => findUserMessage(message, turnId)).find((one) => one !== undefined);
  if (said === undefined) return session;
  const redact = async (message: SessionMessage): Promise<SessionMessage> =>
    message.role === 'user' && findUserMessage(message, turnId) !== undefined ? redacted(scope, message, turnId) : message;
  await scope.sessions.rewriteHistory(session.id, redact);
  const messages = await Promise.all(session.messages.map(redact));
  for (const id of said.uploads) await scope.uploads.remove(id);
  const { summary } = session;
  return {
    ...session,
    title: session.title === toTitle(said.text) ? toTitle('') : session.title,
    summary: summary && { ...summary, text: withoutQuote(summary.text, said.text) },
    messages,
    // The provider's count was of another text.
    contextTokens: null,
  };
}

function findUserMessage(message: SessionMessage, turnId: string): ReceivedMessage | undefined {
  if (message.role !== 'user') return undefined;
  if (message.said !== undefined) return message.said.find((one) => one.turnId === turnId);
  const uploads = (message.attachments ?? []).map(({ id }) => id);
  return message.turnId === turnId ? { text: message.text, uploads } : undefined;
}

async function redacted({ uploads }: TenantScope, message: UserMessage, turnId: string): Promise<UserMessage> {
  const { said = [], attachments: before = [], ...rest } = message;
  const gone = findUserMessage(message, turnId)?.uploads ?? [];
  const refs = before.filter(({ id }) => !gone.includes(id));
  const parts =
    said.length === 0
      ? [{ turnId, text: TAKEN_BACK, uploads: [] }]
      : said.map((one) => (one.turnId === turnId ? { turnId, text: TAKEN_BACK, uploads: [] } : one));
  const attachments = await Promise.all(refs.map(async (upload) => ({ upload, text: await uploads.text(upload.id) })));
  return {
    ...rest,
    text: parts
      .map(({ text }) => text)
      .filter((text) => text !== '')
      .join('\n\n'),
    sent: dynamicContext({ messages: parts, timezone: undefined, now: new Date(message.at), attachments, ...readHeartbeatNews(message) }),
    ...(refs.length > 0 && { attachments: refs }),
    ...(said.length > 0 && { said: parts }),
  };
}

/** What the message states about HEARTBEAT.md stays. */
function readHeartbeatNews({ heartbeat }: UserMessage): { readonly heartbeat?: 'new' | 'gone' } {
  return heartbeat === undefined ? {} : { heartbeat: heartbeat === '' ? 'gone' : 'new' };
}

function withoutQuote(summary: string, text: string): string {
  return text.length < QUOTED_MIN_CHARACTERS ? summary : summary.replaceAll(text, TAKEN_BACK);
}
