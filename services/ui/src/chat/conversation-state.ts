import type { ConciergeError, ReplyPart } from '@concierge/client';
import { JsonObject, type SessionTurn, type SessionView, type TurnView, type ChannelName } from '@concierge/contract';
import { findWholeQuestion, hasEnded, isUnderWay, newTurn, type ChatTurn, type Question, type TurnState } from './chat-turn.ts';
import type { SavedTurn } from './saved-turns.ts';

/** loading → ready, or failed; failed → loading when the user tries again. */
export type ConversationLoad =
  | { readonly at: 'loading' }
  | { readonly at: 'ready' }
  | { readonly at: 'failed'; readonly failure: ConciergeError };

/** One conversation as the page shows it. Immutable. */
export interface ConversationState {
  readonly agent: string;
  /** Null until the service has accepted the first message. */
  readonly contactId: string | null;
  /** The contact that the user plays towards cs; null: an anonymous visitor, or not cs. */
  readonly sender: string | null;
  readonly channel: ChannelName;
  /** A customer has it with an agent: nothing may be written in the customer's place; staff take it over to answer. */
  readonly isCustomers: boolean;
  readonly title: string | null;
  readonly load: ConversationLoad;
  /** The conversation that this one goes on from. */
  readonly forkedFrom: string | null;
  /** Names the page of turns before those that are shown; null: these are the first. */
  readonly earlier: string | null;
  readonly turns: readonly ChatTurn[];
}

/**
 * Contacts that the console plays have prefixed names, so that no real customer's conversation is ever written into.
 */
const PLAYED_PREFIX = 'console:';

export function playedSender(name: string): string | null {
  return name === '' ? null : `${PLAYED_PREFIX}${name}`;
}

/** The name that the console's user gave to the contact, or the sender as it is. */
export function readSenderName(sender: string): string {
  return sender.startsWith(PLAYED_PREFIX) ? sender.slice(PLAYED_PREFIX.length) : sender;
}

/** Until the service has named it, a conversation is called by its first message. */
export function findFirstWords({ turns }: ConversationState): string | undefined {
  return turns.find((turn) => turn.question !== null)?.question?.text.slice(0, 80);
}

export function changeTurn(state: ConversationState, key: string, change: (turn: ChatTurn) => ChatTurn): ConversationState {
  return { ...state, turns: state.turns.map((turn) => (turn.key === key ? change(turn) : turn)) };
}

/** Messages of a conversation, or of its last turns; of these with their records. */
export interface StoredMessages extends Pick<SessionView, 'messages'> {
  readonly turns?: readonly SessionTurn[];
}

export interface Known {
  readonly session: StoredMessages | null;
  readonly views: readonly TurnView[];
  readonly saved: readonly SavedTurn[];
}

/**
 * Every turn of a conversation once: what is stored, then what is under way in the order of acceptance, then what this
 * tab has not handed in yet. A saved message gives a turn under way the question that the service does not list.
 */
export function mergeTurns({ session, views, saved }: Known): ChatTurn[] {
  const stored = session === null ? [] : toStoredTurns(session, [...views, ...(session.turns ?? [])]);
  const shown = new Set(stored.map((turn) => turn.turnId));
  const savedById = new Map(saved.map((turn) => [turn.turnId, turn]));
  const underWay = views
    .filter((view) => (view.status === 'waiting' || view.status === 'running') && !shown.has(view.id))
    // The list is newest first; turns accepted in one millisecond keep its order, turned round.
    .toReversed()
    .toSorted((one, other) => one.acceptedAt.localeCompare(other.acceptedAt))
    .map((view) => {
      const known = savedById.get(view.id);
      shown.add(view.id);
      return newTurn({
        key: known?.key ?? view.id,
        turnId: view.id,
        question: known?.question ?? toListedQuestion(view),
        isFromStaff: view.origin === 'person',
        state: toTurnState(view),
      });
    });
  const remembered = saved
    .filter((turn) => turn.turnId === null || !shown.has(turn.turnId))
    .map(({ key, turnId, question }) => newTurn({ key, turnId, question, state: { at: turnId === null ? 'sending' : 'waiting' } }));
  return [...stored, ...underWay, ...remembered];
}

export interface Difference {
  /** Keys of waiting turns that are to be cancelled. */
  readonly cancelled: readonly string[];
  /** Turns under way that are not shown. */
  readonly missing: readonly ChatTurn[];
  /** A turn has ended that is not shown. */
  readonly isStoredMissing: boolean;
}

/** What a list of the newest turns has beyond those that are shown. */
export function compareTurns(shown: readonly ChatTurn[], views: readonly TurnView[]): Difference {
  const known = new Set(shown.map(({ turnId }) => turnId));
  const cancelling = new Set(views.filter((view) => view.status === 'waiting' && view.cancelling === true).map(({ id }) => id));
  const fresh = views.filter(({ id }) => !known.has(id));
  return {
    cancelled: shown.filter(({ turnId, state }) => state.at === 'waiting' && cancelling.has(turnId ?? '')).map(({ key }) => key),
    missing: mergeTurns({ session: null, views: fresh, saved: [] }),
    isStoredMissing: fresh.some(({ endedAt }) => endedAt !== null),
  };
}

/** The turn, cancelled before it began. */
export function takenBack(turn: ChatTurn): ChatTurn {
  return { ...turn, state: { at: 'done', finishReason: 'cancelled', usage: null, isUnbegun: true } };
}

/** What the list has of a message that was sent elsewhere. */
function toListedQuestion({ input, acceptedAt, origin }: TurnView): Question | null {
  if (input === undefined || origin === 'person') return null;
  return { text: input, attachments: [], at: acceptedAt, isExcerpt: true };
}

/**
 * Puts stored turns before those that are shown already. A shown turn keeps its place and what only the stream
 * contained.
 */
export function withStored(shown: readonly ChatTurn[], stored: readonly ChatTurn[]): ChatTurn[] {
  const storedIds = new Set(stored.map((turn) => turn.turnId));
  const kept = shown.filter((turn) => turn.turnId === null || isUnderWay(turn) || !storedIds.has(turn.turnId));
  const overlap = shown.findIndex((turn) => turn.turnId !== null && storedIds.has(turn.turnId));
  // Pages that were read before, of which the stored ones are the end.
  const earlier = new Set(shown.slice(0, Math.max(0, overlap)).filter((turn) => hasEnded(turn) && turn.turnId !== null));
  const keptIds = new Set(kept.map((turn) => turn.turnId));
  const ended = stored
    .filter((turn) => !keptIds.has(turn.turnId))
    .map((turn) => {
      const before = shown.find((other) => other.turnId === turn.turnId);
      if (before === undefined) return turn;
      return before.parts.length === 0
        ? { ...turn, key: before.key }
        : { ...before, question: findWholeQuestion(before) ?? turn.question ?? before.question };
    });
  return [...earlier, ...ended, ...kept.filter((turn) => !earlier.has(turn))];
}

type Message = SessionView['messages'][number];
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;

/** How a turn stands, from a list of turns or from a page of its conversation. */
type KnownTurn = TurnView | SessionTurn;

/** A stored conversation as turns, oldest first. `known` adds how turns ended and what they used. */
export function toStoredTurns(session: StoredMessages, known: readonly KnownTurn[] = session.turns ?? []): ChatTurn[] {
  const views = new Map(known.map((view) => [view.id, view]));
  const turns = new Map<string, ChatTurn>();
  for (const message of session.messages) {
    const before = turns.get(message.turnId) ?? toStartedTurn(message.turnId, views.get(message.turnId));
    turns.set(message.turnId, addMessage(before, message));
  }
  return [...turns.values()].map((turn) => withTimes(turn, views.get(turn.turnId ?? '')?.steps ?? []));
}

/** How long its calls took, by the record of the turn: each step is that of the next call of its name. */
function withTimes(turn: ChatTurn, steps: NonNullable<SessionTurn['steps']>): ChatTurn {
  const left = steps.filter(({ kind, within }) => kind === 'tool' && within === undefined);
  if (left.length === 0) return turn;
  const parts = turn.parts.map((part): ReplyPart => {
    const index = part.kind === 'tool' ? left.findIndex(({ name }) => name === part.name) : -1;
    const [step] = index === -1 ? [] : left.splice(index, 1);
    return part.kind === 'tool' && step !== undefined ? { ...part, durationMs: step.durationMs } : part;
  });
  return { ...turn, parts };
}

function toStartedTurn(turnId: string, view: KnownTurn | undefined): ChatTurn {
  return newTurn({ key: turnId, turnId, state: view === undefined ? { at: 'done', finishReason: null, usage: null } : toTurnState(view) });
}

function toEndState({ status, startedAt, finishReason, usage, costUsd = null }: KnownTurn): TurnState {
  const isUnbegun = status === 'cancelled' && startedAt === null;
  return { at: 'done', finishReason, usage, ...(costUsd !== null && { costUsd }), ...(isUnbegun && { isUnbegun }) };
}

/** A turn as the service lists it. */
function toTurnState(view: KnownTurn): TurnState {
  if (view.cancelling === true && view.status === 'waiting') return { at: 'done', finishReason: 'cancelled', usage: null, isUnbegun: true };
  switch (view.status) {
    case 'waiting':
    case 'running': {
      return { at: view.status };
    }
    case 'done':
    case 'cancelled': {
      return toEndState(view);
    }
    case 'failed': {
      const { code, message } = view.error ?? { code: 'internal_error', message: 'The turn failed.' };
      return { at: 'failed', failure: { code, message, retryable: true } };
    }
  }
}

function addMessage(turn: ChatTurn, message: Message): ChatTurn {
  switch (message.role) {
    case 'user': {
      // Later ones within a turn are what the user wrote in between; shown as one question.
      const text = turn.question === null ? message.text : `${turn.question.text}\n\n${message.text}`;
      const attachments = [...(turn.question?.attachments ?? []), ...(message.attachments ?? [])];
      return { ...turn, question: { text, attachments, at: turn.question?.at ?? message.at } };
    }
    case 'assistant': {
      const parts = [...turn.parts, ...toParts(message)];
      return {
        ...turn,
        isFromStaff: message.by !== undefined,
        parts,
        settled: parts.length,
        state: message.partial === true ? cut(turn.state) : turn.state,
      };
    }
    case 'tool': {
      return { ...turn, parts: turn.parts.map((part) => withResult(part, message)) };
    }
  }
}

function cut(state: TurnState): TurnState {
  return state.at === 'done' && state.finishReason === null ? { ...state, finishReason: 'cancelled' } : state;
}

function toParts({ text, toolCalls = [] }: AssistantMessage): ReplyPart[] {
  const said: ReplyPart[] = text === '' ? [] : [{ kind: 'text', text }];
  const called = toolCalls.map(({ id, name, arguments: written }): ReplyPart => ({
    kind: 'tool',
    id,
    name,
    input: readInput(written),
    // A stored call without a stored result was cut.
    status: 'error',
    durationMs: null,
    output: null,
    progress: '',
    truncated: false,
  }));
  return [...said, ...called];
}

/** The arguments as the model wrote them may be no JSON at all. */
function readInput(written: string): JsonObject {
  try {
    return JsonObject.parse(JSON.parse(written));
  } catch {
    return written.trim() === '' ? {} : { arguments: written };
  }
}

function withResult(part: ReplyPart, { callId, output, isError }: ToolMessage): ReplyPart {
  if (part.kind !== 'tool' || part.id !== callId) return part;
  return { ...part, output, status: isError ? 'error' : 'ok' };
}
