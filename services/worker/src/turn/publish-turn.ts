import type { Conversation } from '@concierge/agent';
import type { Session, TurnRecord } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { toEndEvent, type TurnEnd, type TurnRun } from '@concierge/turn';
import type { CapabilityFactories } from '../capabilities/turn-capabilities.ts';
import { endedSession, turnRecord, type TurnOutcome } from './ended-session.ts';
import { answeredTogether, toCollectedRecord, turnsNamed } from './collected-turns.ts';
import { logFacts } from './prepare-turn.ts';
import { endFacts, traceFacts } from '../trace/trace-facts.ts';
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
    // Sub-agents end with the turn that waited for them; should this attempt die here, the next one finds the same.
    if (outcome.status !== 'done' && mayHaveStartedOthers(run, conversation)) await this.#options.capabilityFactories.cancelSubagents(run);
    const record = { ...turnRecord(run, conversation, outcome), trace: traceFacts(run, session, conversation) };
    const collected = (await turnsNamed(scope, conversation.joined)).map((other) => ({
      turn: other,
      record: toCollectedRecord(other, record),
    }));
    const records = [record, ...collected.map((other) => other.record)] as const;
    const { next, history } = endedSession(session, conversation, { records, channelAddress: turn.channelMessage?.address });
    if (history.length > 0) await scope.sessions.appendHistory(session.id, history);
    await scope.sessions.publish(next);
    const answered = records.map(({ id }) => id);
    await this.#indexSession(run, next, answered);
    await this.#followUp(run, next, record);
    for (const one of [{ turn, record }, ...collected]) this.#noteEnd(one);
    this.#logEnd(run, record);
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
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, INDEX_WAIT_MS);
    await Promise.race([put, waited.promise]);
    isLate = true;
    clearTimeout(timer);
  }

  #noteEnd({ turn, record }: { readonly turn: TurnRun['turn']; readonly record: TurnRecord }): void {
    this.#options.metrics.ended(turn, record);
    this.#options.spans?.ended(turn, record);
  }

  /** One line answers what happened to a message. */
  #logEnd(run: TurnRun, record: TurnRecord): void {
    this.#options.log.info({ ...logFacts(run), ...endFacts(run, record) }, 'turn ended');
  }
}

/** Tools through which others are started: their own, and the command line of the sandbox. */
const starters: ReadonlySet<string> = new Set(['subagents', 'bash', 'exec', 'process']);

function mayHaveStartedOthers({ turn }: TurnRun, { messages, tally }: Conversation): boolean {
  const asked = (message: Session['messages'][number]): boolean =>
    message.role === 'assistant' && message.turnId === turn.turnId && message.toolCalls?.some(({ name }) => starters.has(name)) === true;
  return tally.steps.some(({ kind, name }) => kind === 'tool' && starters.has(name)) || messages.some(asked);
}
