import { closeOpenCalls, Conversation, runAgentLoop } from '@concierge/agent';
import type { AssistantMessage, ErrorCode, Session, TenantSettings, TurnRecord, TurnStep } from '@concierge/contract';
import { isFlagged, ModelError } from '@concierge/model';
import type { TurnEnd, TurnHandlers, TurnRun } from '@concierge/turn';
import { markUnbegun, newSession, type TurnOutcome, noteFor, toOutcome, whyItFailed } from './ended-session.ts';
import { logFacts, promptStep, TurnPreparation, type TurnPreparationOptions } from './prepare-turn.ts';
import { TurnPublication, type TurnPublicationOptions } from './publish-turn.ts';
import { redactTurn } from './taken-back.ts';
import { agentDefinition } from './turn-agent.ts';

export type TurnRunnerOptions = TurnPreparationOptions & TurnPublicationOptions;

const done = { status: 'done', finishReason: 'stop' } as const;

/**
 * Runs turns: session → prompt → loop → session published → index → its end, in this order. A turn that the session
 * already contains was saved but not announced: its end alone is announced.
 */
export class TurnRunner implements TurnHandlers {
  readonly #options: TurnRunnerOptions;
  readonly #preparation: TurnPreparation;
  readonly #publication: TurnPublication;

  constructor(options: TurnRunnerOptions) {
    this.#options = options;
    this.#preparation = new TurnPreparation(options);
    this.#publication = new TurnPublication(options);
  }

  async runTurn(run: TurnRun): Promise<TurnEnd> {
    this.#options.metrics.started(run);
    const session = await loadOrBegin(run);
    const known = findRecord(session, run);
    if (known !== undefined) return this.#publication.republishTurn(run, session, known);
    if (run.turn.retracts !== undefined) return this.#retract(run, session, run.turn.retracts);
    const conversation = replayJournal(session, run);
    if (run.reset !== null) run.writer.emit({ type: 'text_reset', data: { reason: run.reset } });
    const outcome = await this.#answer(run, session, conversation);
    return this.#publication.publishTurn(run, session, { conversation, outcome });
  }

  async failTurn(run: TurnRun, code: ErrorCode): Promise<TurnEnd> {
    const session = await loadOrBegin(run);
    const known = findRecord(session, run);
    if (known !== undefined) return this.#publication.republishTurn(run, session, known);
    const conversation = replayJournal(session, run);
    const message = 'The turn stopped its worker several times and was given up.';
    const outcome = await endEarly(run, conversation, { status: 'failed', code, message });
    return this.#publication.publishTurn(run, session, { conversation, outcome });
  }

  /** Earlier revisions go as well: they still have the retracted text. */
  async #retract(run: TurnRun, session: Session, turnId: string): Promise<TurnEnd> {
    const redacted = await redactTurn(run.scope, session, turnId);
    const end = await this.#publication.publishTurn(run, redacted, { conversation: replayJournal(redacted, run), outcome: done });
    await run.scope.sessions.dropEarlier(session.id);
    return end;
  }

  async #answer(run: TurnRun, session: Session, conversation: Conversation): Promise<TurnOutcome> {
    try {
      if (await isLeftBehind(run)) return await endEarly(run, conversation, { status: 'cancelled' });
      const settings = await run.scope.settings();
      const unasked = await this.#answerWithoutModel(run, conversation, settings);
      if (unasked !== undefined) return unasked;
      await using prepared = await this.#preparation.prepareTurn(run, conversation, { session, settings });
      return { status: 'done', finishReason: await runAgentLoop(prepared.loop) };
    } catch (error) {
      const outcome = markUnbegun(conversation, toOutcome(error, run.signal, await isOwners(run)));
      if (outcome.status === 'failed') this.#reportFailure(run, error, outcome.code);
      return endEarly(run, conversation, outcome);
    }
  }

  /**
   * Turns that no agent answers: what staff writes, what the service answers itself, and what came in while staff has
   * the conversation.
   */
  async #answerWithoutModel(run: TurnRun, conversation: Conversation, { timezone }: TenantSettings): Promise<TurnOutcome | undefined> {
    const { turn, signal } = run;
    signal.throwIfAborted();
    if (turn.origin === 'person') {
      await writeScripted(run, conversation, turn.text);
      return done;
    }
    const reply = turn.channelMessage === undefined ? undefined : await this.#options.channels?.commands?.run(run);
    if (reply !== undefined) {
      if (!conversation.hasPrompt) await this.#preparation.addPrompt(run, conversation, { turns: [turn], timezone });
      await writeScripted(run, conversation, reply);
      return done;
    }
    if (!(await isWithStaff(run))) return undefined;
    // This is not journaled: should this attempt die, the next one checks anew who has the conversation.
    if (!conversation.hasPrompt) conversation.apply(await this.#preparation.buildPrompt(run, [turn], { timezone, isHeldBack: true }));
    return endEarly(run, conversation, { ...done, heldBack: 'handoff' });
  }

  #reportFailure(run: TurnRun, error: unknown, code: ErrorCode): void {
    const { log, warn } = this.#options;
    const provider = error instanceof ModelError ? { model: error.model, providerStatus: error.status, providerCode: error.code } : {};
    log.warn({ ...logFacts(run), ...provider, err: error, code }, 'turn failed');
    // What one conversation holds keeps no other from being answered.
    if (!(error instanceof ModelError) || error.kind !== 'rejected' || isFlagged(error)) return;
    const keyAdvice = error.ownKey ? ' The key of the operator is not used in its place: enter another one, or remove it.' : '';
    const message = `No turn with this model is answered. ${whyItFailed(error)}.${keyAdvice}`;
    warn?.(run, { code: 'model_refused', message, subject: `${error.model ?? ''} ${error.code ?? ''} ${String(error.status)}` });
  }
}

/**
 * Writes text in the agent's place that no model wrote, streamed and journaled like a reply. A recovering attempt that
 * finds it in the journal does not write it again.
 */
async function writeScripted({ turn, writer }: TurnRun, conversation: Conversation, text: string): Promise<void> {
  if (conversation.replies > 0) return;
  const message: AssistantMessage = {
    id: conversation.nextReplyId,
    turnId: turn.turnId,
    at: new Date().toISOString(),
    role: 'assistant',
    text,
    ...(turn.by !== undefined && { by: turn.by }),
  };
  const step: TurnStep = { kind: 'said', message };
  writer.emit({ type: 'text_delta', data: { delta: text } });
  conversation.apply(step);
  await writer.step(step);
}

/** Ends the conversation where it stands; the user's message is in it, whatever happened. */
async function endEarly(run: TurnRun, conversation: Conversation, outcome: TurnOutcome): Promise<TurnOutcome> {
  // A message of staff is no user's message, and a retraction has no text.
  if (!conversation.hasPrompt && run.turn.origin !== 'person' && run.turn.origin !== 'retraction')
    conversation.apply(await promptStep([{ turn: run.turn }], { timezone: undefined }, async ({ id }) => run.scope.uploads.text(id)));
  closeOpenCalls({ conversation, writer: run.writer, startedCalls: run.openCalls }, noteFor(outcome));
  return outcome;
}

/** Whether the owner reads how the turn ends, and not a customer. */
async function isOwners({ scope, turn }: TurnRun): Promise<boolean> {
  const definition = await agentDefinition(scope, turn.agent);
  return turn.authority === 'admin' && definition?.access === 'admin';
}

/**
 * Staff has the conversation, so the turn is not for the agent. A turn that asked for staff itself may come to its end.
 */
async function isWithStaff({ scope, turn }: TurnRun): Promise<boolean> {
  if (!(await scope.uses('handoffs')) || !(await scope.handoffs.isPaused(turn.sessionId))) return false;
  const asker = (await scope.handoffs.find(turn.sessionId))?.requestedBy;
  return !(asker?.kind === 'agent' && asker.turnId === turn.turnId);
}

/** The turn that started this one has ended or is to end, so it no longer waits for the answer. */
async function isLeftBehind({ scope, turn: { grant } }: TurnRun): Promise<boolean> {
  if (grant === undefined) return false;
  return (await scope.inbox.read(grant.parentTurnId)) === undefined || (await scope.inbox.isCancelled(grant.parentTurnId));
}

async function loadOrBegin({ scope, turn }: TurnRun): Promise<Session> {
  return (await scope.sessions.load(turn.sessionId)) ?? newSession(turn, new Date().toISOString());
}

function findRecord(session: Session, run: TurnRun): TurnRecord | undefined {
  return session.turns.findLast((record) => record.id === run.turn.turnId);
}

/** The conversation as the attempts before this one left it. */
function replayJournal(session: Session, run: TurnRun): Conversation {
  const conversation = new Conversation(session, run.turn.turnId);
  for (const step of run.steps) conversation.apply(step);
  return conversation;
}
