import type { Conversation } from '@concierge/agent';
import { type Session, type TurnRecord, isMessagingChannel, type AcceptedTurn, type TenantSettings } from '@concierge/contract';
import { waitForAnswer, type Log } from '@concierge/runtime';
import { toEndEvent, type TurnEnd, type TurnRun, turnEnded, type WebhookEvents } from '@concierge/turn';
import { findAnswer, hasReachedContact } from '@concierge/tenant';
import type { CapabilityFactories } from '../capabilities/turn-capabilities.ts';
import { endedSession, endFacts, traceFacts, turnRecord, type TurnOutcome } from './ended-session.ts';
import { answeredTogether, toCollectedRecord, turnsNamed } from './collected-turns.ts';
import { logFacts } from './prepare-turn.ts';
import type { TurnSpans } from '../trace/turn-spans.ts';
import type { TurnMetrics } from '../metrics.ts';

export type FollowUp = (run: TurnRun, session: Session, record: TurnRecord) => Promise<void>;

export interface TurnPublicationOptions {
  readonly capabilityFactories: Pick<CapabilityFactories, 'cancelSubagents'>;
  /**
   * What follows from an ended turn beside its end: called when the session that contains it is published and before
   * the end is announced, again by every attempt that finds it published. What is kept under an id that follows from
   * the turn happens once.
   */
  readonly followUps?: readonly FollowUp[];
  readonly metrics: TurnMetrics;
  /** Exports ended turns, where that is configured. */
  readonly spans?: Pick<TurnSpans, 'ended'> | undefined;
  readonly log: Log;
}

/** What the index may take before the end is announced without waiting for it. */
const INDEX_WAIT_MS = 2000;

/** Publishes ended turns: session file → index → follow-ups. Only after that the end may be announced. */
export class TurnPublication {
  readonly #options: TurnPublicationOptions;

  constructor(options: TurnPublicationOptions) {
    this.#options = options;
  }

  async publishTurn(run: TurnRun, session: Session, ended: { conversation: Conversation; outcome: TurnOutcome }): Promise<TurnEnd> {
    const { scope, turn } = run;
    const { conversation, outcome } = ended;
    const { metrics, spans, log } = this.#options;
    // Sub-agents end with the turn that waited for them; should this attempt die here, the next one finds the same.
    if (outcome.status !== 'done' && mayHaveStartedOthers(run, conversation)) await this.#options.capabilityFactories.cancelSubagents(run);
    const record = { ...turnRecord(run, conversation, outcome), trace: traceFacts(run, session, conversation) };
    const joined = conversation.joined.length === 0 ? [] : await turnsNamed(scope, conversation.joined);
    const collected = joined.map((other) => ({ turn: other, record: toCollectedRecord(other, record) }));
    const records = [record, ...collected.map((other) => other.record)] as const;
    const { next, history } = endedSession(session, conversation, { records, channelAddress: turn.channelMessage?.address });
    if (history.length > 0) await scope.sessions.appendHistory(session.id, history);
    await scope.sessions.publish(next);
    const answered = records.map(({ id }) => id);
    await this.#indexSession(run, next, answered);
    await this.#followUp(run, next, record);
    for (const one of [{ turn, record }, ...collected]) {
      metrics.ended(one.turn, one.record);
      spans?.ended(one.turn, one.record);
    }
    // One line answers what happened to a message.
    log.info({ ...logFacts(run), ...endFacts(run, record) }, 'turn ended');
    return { event: toEndEvent(record), answered };
  }

  /**
   * Repeats what follows a turn that the session contains already: the attempt that published it may have died before
   * it did the rest.
   */
  async republishTurn(run: TurnRun, session: Session, record: TurnRecord): Promise<TurnEnd> {
    const answered = answeredTogether(session, record.id);
    await this.#indexSession(run, session, answered);
    await this.#followUp(run, session, record);
    return { event: toEndEvent(record), isRepeated: true, answered };
  }

  /** A failure here fails the attempt: the next one finds the turn published and repeats this. */
  async #followUp(run: TurnRun, session: Session, record: TurnRecord): Promise<void> {
    for (const followUp of this.#options.followUps ?? []) await followUp(run, session, record);
  }

  /** The index is disposable: it may fail or be slow, and a rebuild makes up for it. */
  async #indexSession(run: TurnRun, session: Session, turnIds: readonly string[]): Promise<void> {
    let isLate = false;
    const put = run.scope.index
      .putSession(session, { turnIds })
      .then(() => {
        // Pages that have heard of the turn's end have read a list without it.
        if (isLate) run.scope.tellSession?.(session.id);
      })
      .catch((error: unknown) => {
        this.#options.log.error({ ...logFacts(run), err: error }, 'session is not in the index until a reindex');
      });
    // A time in which this process itself stood still is none that the index took.
    await Promise.race([put, waitForAnswer(INDEX_WAIT_MS)]);
    isLate = true;
  }
}

/** Tools through which others are started: their own, and the command line of the sandbox. */
const starters: ReadonlySet<string> = new Set(['subagents', 'bash', 'exec', 'process']);

function mayHaveStartedOthers({ turn }: TurnRun, { messages, tally }: Conversation): boolean {
  const asked = (message: Session['messages'][number]): boolean =>
    message.role === 'assistant' && message.turnId === turn.turnId && message.toolCalls?.some(({ name }) => starters.has(name)) === true;
  return tally.steps.some(({ kind, name }) => kind === 'tool' && starters.has(name)) || messages.some(asked);
}

const SORRY = 'Sorry, something went wrong here and I could not answer. Please try again in a few minutes.';
const SORRY_HANDED_OVER = 'Sorry, I could not answer this. A colleague has been notified and will get back to you here.';

type FailureSettings = NonNullable<TenantSettings['onFailure']>;

/**
 * Puts what a conversation on a channel is sent at the end of a turn into the outbox: the agent's answer, what a staff
 * member wrote, or the notice of a failure. Once, however often this is called.
 */
export function channelFollowUp(requestStaff: CapabilityFactories['requestStaff']): FollowUp {
  return async (run, session, record) => {
    if (session.channelAddress === undefined) return;
    await deliverStaffMessage(run, session, record);
    if (record.joinedTo !== undefined) return;
    if (record.status === 'failed' || isUnsaid(session, record)) await reportFailure(run, record, requestStaff);
    else if (record.status === 'done') await answer(run, session, record);
  };
}

/**
 * Whether the reply ended before a word of it, which no agent chooses: all of its length went into thoughts or a call,
 * or the provider withheld it.
 */
function isUnsaid(session: Session, { id, finishReason, heldBack }: TurnRecord): boolean {
  if (heldBack !== undefined || (finishReason !== 'length' && finishReason !== 'content_filter')) return false;
  return findAnswer(session, id) === '' && !hasReachedContact(session, id);
}

async function answer({ scope, turn }: TurnRun, session: Session, { heldBack }: TurnRecord): Promise<void> {
  const recipient = toRecipient(turn);
  if (recipient === undefined || heldBack !== undefined) return;
  const { sessionId, agent, turnId, acceptedAtMs } = turn;
  const text = findAnswer(session, turnId);
  if (text === '') return;
  const inboundAt = new Date(acceptedAtMs).toISOString();
  await scope.outbox.accept({ kind: 'answer', ...recipient, sessionId, text, agent, turnId, callId: 'answer', inboundAt });
}

/** Delivers what a staff member wrote in a conversation to the conversation's channel. */
export const deliverStaffMessage: FollowUp = async ({ scope, turn }, { id: sessionId, agent, channel, channelAddress }, record) => {
  if (turn.origin !== 'person' || record.status !== 'done' || channelAddress === undefined || !isMessagingChannel(channel)) return;
  const { to, thread } = channelAddress;
  const { turnId, text } = turn;
  await scope.outbox.accept({
    kind: 'person',
    channel,
    to,
    ...(thread !== null && { thread }),
    sessionId,
    text,
    agent,
    turnId,
    callId: 'person',
  });
};

/** Emits the end of a turn to the tenant's own systems, where one of them subscribes to it. */
export function emitTurnEnd(webhookEvents: Pick<WebhookEvents, 'emit'>): FollowUp {
  return async ({ scope, turn }, session, record) => {
    // A retraction asks nothing and gets no answer.
    if (turn.origin === 'retraction' || !(await scope.uses('events/endpoints'))) return;
    const webhookEvent = turnEnded(turn, record, async () => Promise.resolve(joinReply(session, turn.turnId)));
    if (webhookEvent !== undefined) await webhookEvents.emit(scope, webhookEvent);
  };
}

/** The whole text of the agent in the turn, as a client that does not stream gets it. */
function joinReply(session: Session, turnId: string): string {
  return session.messages.flatMap((message) => (message.role === 'assistant' && message.turnId === turnId ? [message.text] : [])).join('');
}

/**
 * A contact on a channel sees no error: without a message they would wait for an answer that does not come. They are
 * notified as the tenant's settings state, by a message beside the conversation: the stream of the turn ends with its
 * error, and the session holds nothing that no agent wrote.
 */
async function reportFailure(run: TurnRun, record: TurnRecord, requestStaff: CapabilityFactories['requestStaff']): Promise<void> {
  const { scope, turn } = run;
  if (turn.channelMessage === undefined) return;
  const { onFailure = {}, handoff = {} } = await scope.settings();
  if (onFailure.action === 'silent') return;
  if (onFailure.action === 'handoff') {
    await handOver(run, record, requestStaff);
    // The handoff sends its own notice.
    if (handoff.notice === undefined) await notifyContact(run, 'notice', onFailure);
    return;
  }
  // Staff has the conversation: they write what the agent could not.
  if (!(await scope.handoffs.isPaused(turn.sessionId))) await notifyContact(run, 'answer', onFailure);
}

async function handOver(run: TurnRun, { error }: TurnRecord, requestStaff: CapabilityFactories['requestStaff']): Promise<void> {
  const { agent, sessionId, turnId } = run.turn;
  const reason = `The agent could not answer: ${error?.message ?? 'its reply ended before a word of it.'}`;
  await requestStaff(run)({ sessionId, reason, hours: undefined, by: { kind: 'agent', agent, turnId } });
}

/** An `answer` is withheld while staff has the conversation; a `notice` announces that a staff member was requested. */
async function notifyContact({ scope, turn }: TurnRun, kind: 'answer' | 'notice', { notice }: FailureSettings): Promise<void> {
  const recipient = toRecipient(turn);
  if (recipient === undefined) return;
  const { sessionId, agent, turnId, acceptedAtMs } = turn;
  const text = notice ?? (kind === 'notice' ? SORRY_HANDED_OVER : SORRY);
  const inboundAt = new Date(acceptedAtMs).toISOString();
  await scope.outbox.accept({ kind, ...recipient, sessionId, text, agent, turnId, callId: 'failure', inboundAt });
}

/** Where an answer would have gone, as the answer to that message. */
function toRecipient({ channel, channelMessage }: AcceptedTurn) {
  if (channelMessage === undefined || !isMessagingChannel(channel)) return undefined;
  const { address, isGroup, messageRef } = channelMessage;
  // In a private chat it is plain which message is answered.
  return { channel, to: address.to, ...(address.thread !== null && { thread: address.thread }), ...(isGroup && { replyTo: messageRef }) };
}
