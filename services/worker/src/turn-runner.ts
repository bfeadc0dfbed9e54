import {
  allTools,
  breakOff,
  buildSystemPrompt,
  Conversation,
  Dispatcher,
  makeRoom,
  runAgentLoop,
  ToolBox,
  toolScope,
  type LoopRun,
  type Tool,
  type ToolSet,
} from '@concierge/agent';
import {
  limits,
  type ErrorCode,
  type ModelFacts,
  type Session,
  type TenantSettings,
  type TurnRecord,
  type TurnStep,
} from '@concierge/contract';
import { ModelError, type Model } from '@concierge/model';
import { Slots, type Log } from '@concierge/runtime';
import { endOf, type TurnEnd, type TurnHandlers, type TurnRun } from '@concierge/turn';
import { lendCapabilities, type Lenders, type LentCapabilities } from './capabilities/turn-capabilities.ts';
import type { ChatApps } from './chat-apps/chat-apps.ts';
import { contextBudget, turnStatus } from './context-figures.ts';
import { endedSession, newSession, turnRecord, type TurnOutcome } from './ended-session.ts';
import { isHandedOver } from './handed-over.ts';
import type { HandoffCommands } from './handoff-commands.ts';
import { answeredTogether, joinedRecord, turnsNamed, turnsToAnswer, type TurnsToAnswer } from './joined-turns.ts';
import { promptContext, warnOfSmallWindow, type PromptContext } from './prompt-context.ts';
import { SessionImages, userMessageOf, type PromptFacts, type PromptTurn, type ReadText } from './prompt-turn.ts';
import { speak } from './spoken-turn.ts';
import { withoutWordsOf } from './taken-back.ts';
import { ToolSets } from './tool-sets.ts';
import { agentDefinition, turnAgent, type TurnAgent } from './turn-agent.ts';
import type { TurnMetrics } from './turn-metrics.ts';
import type { ReportWarning } from './turn-warnings.ts';
import { noteFor, outcomeOf, whyItFailed } from './turn-outcome.ts';

/** A model as the runner needs it: what it is, and how much it takes. */
export interface ChosenModel extends Model {
  readonly ref: string;
  readonly facts: ModelFacts;
}

export type FollowUp = (run: TurnRun, session: Session, record: TurnRecord) => Promise<void>;

/** Where a turn's tools come from. */
export interface ToolSources {
  /** All of them unless given. */
  readonly builtIn?: readonly Tool[];
  /** Tools of servers that the tenant has attached to the turn's agent; without it there are none. */
  attached?(run: TurnRun): Promise<readonly Tool[]>;
}

/** What turns need that came from a channel. */
export interface ChannelParts {
  /** Their files, and typing; without it nothing is fetched or shown. */
  readonly chatApps?: ChatApps;
  /** What staff may write that answers in the agent's place; without it no text is more than text. */
  readonly commands?: Pick<HandoffCommands, 'run'>;
}

export interface TurnRunnerOptions {
  /** The model of this reference with its fallbacks; the deployment's default when undefined. @throws ModelError */
  modelFor(ref: string | undefined): ChosenModel;
  readonly tools?: ToolSources;
  readonly lenders: Lenders;
  /**
   * What follows from an ended turn beside its end: called when the session that contains it is published and before the end is announced, again by
   * every attempt that finds it published. What is kept under an id that follows from the turn happens once.
   */
  readonly followUps?: readonly FollowUp[];
  readonly channels?: ChannelParts;
  /** Reports to owner and operator what does not end the turn, but concerns them. */
  readonly warn?: ReportWarning;
  readonly metrics: TurnMetrics;
  readonly log: Log;
}

/** What the index may take before the end is announced without waiting for it. */
const INDEX_WAIT_MS = 2000;
/** All attachments of a message; one that is not read by then is left to `view_attachment`. */
const READ_TIMEOUT_MS = 40_000;

/**
 * Runs turns: session → prompt → loop → session published → index → its end, in this order. A turn that the session already
 * contains was saved but not announced: it is only announced.
 */
export class TurnRunner implements TurnHandlers {
  readonly #options: TurnRunnerOptions;
  readonly #toolSets: ToolSets;

  constructor(options: TurnRunnerOptions) {
    this.#options = options;
    this.#toolSets = new ToolSets(options.tools?.builtIn ?? allTools);
  }

  async runTurn(run: TurnRun): Promise<TurnEnd> {
    const session = await loadOrBegin(run);
    const known = recordOf(session, run);
    if (known !== undefined) return this.#repeat(run, session, known);
    if (run.turn.retracts !== undefined) return this.#takeBack(run, session, run.turn.retracts);
    const conversation = conversationOf(session, run);
    if (run.reset !== null) run.writer.emit({ type: 'text_reset', data: { reason: run.reset } });
    const outcome = await this.#converse(run, session, conversation);
    return this.#save(run, session, { conversation, outcome });
  }

  /** Earlier revisions go as well: they have the words still. */
  async #takeBack(run: TurnRun, session: Session, turnId: string): Promise<TurnEnd> {
    const redacted = await withoutWordsOf(run.scope, session, turnId);
    const outcome: TurnOutcome = { status: 'done', finishReason: 'stop' };
    const end = await this.#save(run, redacted, { conversation: conversationOf(redacted, run), outcome });
    await run.scope.sessions.dropEarlier(session.id);
    return end;
  }

  async failTurn(run: TurnRun, code: ErrorCode): Promise<TurnEnd> {
    const session = await loadOrBegin(run);
    const known = recordOf(session, run);
    if (known !== undefined) return this.#repeat(run, session, known);
    const conversation = conversationOf(session, run);
    const message = 'The turn stopped its worker several times and was given up.';
    const outcome = await endEarly(run, conversation, { status: 'failed', code, message });
    return this.#save(run, session, { conversation, outcome });
  }

  /** Whoever published it may have died before the index heard of it. */
  async #repeat(run: TurnRun, session: Session, record: TurnRecord): Promise<TurnEnd> {
    await this.#index(run, session);
    await this.#followUp(run, session, record);
    return { event: endOf(record), isRepeated: true, answered: answeredTogether(session, record.id) };
  }

  async #converse(run: TurnRun, session: Session, conversation: Conversation): Promise<TurnOutcome> {
    try {
      if (await isLeftBehind(run)) return await endEarly(run, conversation, { status: 'cancelled' });
      const settings = await run.scope.settings();
      const unasked = await this.#withoutModel(run, conversation, settings);
      if (unasked !== undefined) return unasked;
      const turns = await turnsToAnswer(run, session, conversation);
      using _typing = this.#options.channels?.chatApps?.showTyping(run, turns);
      const agent = await turnAgent(run, settings);
      const model = this.#options.modelFor(agent.model);
      const context = await promptContext(run, { agent, facts: model.facts, warn: this.#options.warn });
      const heartbeat = { now: context.heartbeat, known: conversation.heartbeat };
      if (!conversation.hasPrompt) await this.#ask(run, conversation, { turns, heartbeat, timezone: settings.timezone });
      const asked = askedRun(run, conversation);
      const set = await this.#toolSet(asked, agent);
      await using lent = lendCapabilities(this.#options.lenders, asked, { access: agent.access, tools: set.names });
      const loop = this.#prepare(asked, conversation, { settings, agent, model, context, set, lent });
      return { status: 'done', finishReason: await runAgentLoop(loop) };
    } catch (error) {
      const outcome = outcomeOf(error, run.signal, await isOwners(run));
      if (outcome.status === 'failed') this.#reportFailure(run, error, outcome.code);
      return endEarly(run, conversation, outcome);
    }
  }

  #reportFailure(run: TurnRun, error: unknown, code: ErrorCode): void {
    const { log, warn } = this.#options;
    const provider = error instanceof ModelError ? { model: error.model, providerStatus: error.status, providerCode: error.code } : {};
    log.warn({ ...factsOf(run), ...provider, err: error, code }, 'turn failed');
    if (!(error instanceof ModelError) || error.kind !== 'rejected') return;
    const message = `No turn with this model is answered. ${whyItFailed(error)}.`;
    warn?.(run, { code: 'model_refused', message, subject: `${error.model ?? ''} ${error.code ?? ''} ${String(error.status)}` });
  }

  /** Turns that no agent answers: what a person says, what the service answers itself, and what came in while a person has the conversation. */
  async #withoutModel(run: TurnRun, conversation: Conversation, { timezone }: TenantSettings): Promise<TurnOutcome | undefined> {
    const { turn, signal } = run;
    const done = { status: 'done', finishReason: 'stop' } as const;
    signal.throwIfAborted();
    if (turn.origin === 'person') {
      await speak(run, conversation, turn.text);
      return done;
    }
    const reply = await this.#options.channels?.commands?.run(run);
    if (reply !== undefined) {
      if (!conversation.hasPrompt) await this.#ask(run, conversation, { turns: [turn], timezone });
      await speak(run, conversation, reply);
      return done;
    }
    if (!(await isHandedOver(run))) return undefined;
    // Not journaled: should this attempt die, the next one looks anew who has the conversation.
    if (!conversation.hasPrompt) conversation.apply(await this.#promptStep(run, [turn], { timezone, isHeldBack: true }));
    return endEarly(run, conversation, { ...done, heldBack: 'handoff' });
  }

  /** The one place that decides which tools a turn has: those of the registry and of attached servers that its agent's access and every list allow. */
  async #toolSet(run: TurnRun, agent: TurnAgent): Promise<ToolSet> {
    return this.#toolSets.of(agent, (await this.#options.tools?.attached?.(run)) ?? []);
  }

  /** Adds the user's message: once, and journaled as it was. */
  async #ask(
    run: TurnRun,
    conversation: Conversation,
    { turns, ...facts }: PromptFacts & { readonly turns: TurnsToAnswer },
  ): Promise<void> {
    const step = await this.#promptStep(run, turns, facts);
    conversation.apply(step);
    run.writer.record(step);
  }

  /** What came with the messages is fetched, kept and read before anything is said about it. */
  async #promptStep(run: TurnRun, turns: TurnsToAnswer, facts: PromptFacts): Promise<TurnStep> {
    const read = this.#options.lenders.readUpload(run);
    let signal: AbortSignal | undefined;
    const readText: ReadText = async (upload) => {
      signal ??= AbortSignal.any([run.signal, AbortSignal.timeout(READ_TIMEOUT_MS)]);
      const text = await read(upload, signal);
      run.signal.throwIfAborted();
      return text;
    };
    return promptStep(await this.#withFiles(run, turns), facts, readText);
  }

  #prepare(run: TurnRun, conversation: Conversation, { settings, agent, model, context, set, lent }: Prepared): LoopRun {
    const { scope, turn, writer, signal } = run;
    const { access, allow, maxTurns } = agent;
    const system = buildSystemPrompt(context);
    const budget = contextBudget(model.facts, system, set);
    warnOfSmallWindow(run, { budget, model, warn: this.#options.warn });
    const status = turnStatus({ turn, conversation, budget, model, maxTurns, timezone: settings.timezone });
    const showsImages = model.facts.images;
    const tools = this.#toolBox(run, set, toolScope({ scope, turn, access, allow, capabilities: lent, status, showsImages }));
    lent.runtime.answerWith(new Dispatcher({ tools, conversation, writer, newSlots: () => new Slots(limits.nestedCallsAtOnce) }));
    const images = new SessionImages(scope.uploads);
    const { log } = this.#options;
    const onFallback = (error: unknown): void => {
      log.warn({ ...factsOf(run), err: error }, 'no summary could be had, sentences of the conversation were kept');
      this.#options.warn?.(run, { code: 'summary_failed', message: summaryFailed(error) });
    };
    return {
      conversation,
      model,
      system,
      tools,
      imagesOf: async (messages) => (model.facts.images ? images.of(messages) : new Map()),
      maxTurns,
      signal,
      writer,
      makeRoom: async (reason) => makeRoom({ conversation, model, budget, writer, signal, onFallback }, reason),
      startedCalls: run.openCalls,
    };
  }

  async #withFiles(run: TurnRun, turns: TurnsToAnswer): Promise<readonly [PromptTurn, ...PromptTurn[]]> {
    const [head, ...joined] = turns;
    const files = await this.#options.channels?.chatApps?.fetchFiles(run, turns);
    return [{ turn: head, files: files?.get(head.turnId) }, ...joined.map((turn) => ({ turn, files: files?.get(turn.turnId) }))];
  }

  #toolBox(run: TurnRun, set: ToolSet, context: ReturnType<typeof toolScope>): ToolBox {
    return new ToolBox({
      set,
      context,
      onFailure: ({ tool, error }) => {
        this.#options.log.error({ ...factsOf(run), tool, err: error }, 'tool failed inside the service');
      },
    });
  }

  /** Published before it is announced; in the index before it is announced, too, where that answers in time. */
  async #save(run: TurnRun, session: Session, ended: { conversation: Conversation; outcome: TurnOutcome }): Promise<TurnEnd> {
    const { scope, turn } = run;
    // What it waited for ends with it; should this attempt die here, the next one finds the same.
    if (ended.outcome.status !== 'done' && mayHaveStartedOthers(run, ended.conversation)) await this.#options.lenders.cancelSubagents(run);
    const record = turnRecord(run, ended.conversation, ended.outcome);
    const joined = (await turnsNamed(scope, ended.conversation.joined)).map((other) => ({
      turn: other,
      record: joinedRecord(other, record),
    }));
    const records = [record, ...joined.map((other) => other.record)] as const;
    const { next, history } = endedSession(session, ended.conversation, { records, chatApp: turn.chatApp?.address });
    if (history.length > 0) await scope.sessions.appendHistory(session.id, history);
    await scope.sessions.publish(next);
    await this.#index(run, next);
    await this.#followUp(run, next, record);
    for (const one of [{ turn, record }, ...joined]) this.#options.metrics.ended(one.turn, one.record);
    this.#logEnd(run, record);
    return { event: endOf(record), answered: answeredTogether(next, record.id) };
  }

  /** What fails here fails the attempt: the next one finds the turn published and does it again. */
  async #followUp(run: TurnRun, session: Session, record: TurnRecord): Promise<void> {
    for (const followUp of this.#options.followUps ?? []) await followUp(run, session, record);
  }

  /** The index is disposable: it may fail or be slow, and a rebuild makes up for it. */
  async #index(run: TurnRun, session: Session): Promise<void> {
    const { log } = this.#options;
    const turnIds = answeredTogether(session, run.turn.turnId);
    const put = run.scope.index.putSession(session, { turnIds }).catch((error: unknown) => {
      log.error({ ...factsOf(run), err: error }, 'session is not in the index until a reindex');
    });
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, INDEX_WAIT_MS);
    await Promise.race([put, waited.promise]);
    clearTimeout(timer);
  }

  #logEnd(run: TurnRun, { status, usage, steps, endedAt }: TurnRecord): void {
    const ms = Date.parse(endedAt) - run.turn.acceptedAtMs;
    this.#options.log.info({ ...factsOf(run), agent: run.turn.agent, status, steps: steps.length, ...usage, ms }, 'turn ended');
  }
}

interface Prepared {
  readonly settings: TenantSettings;
  readonly agent: TurnAgent;
  readonly model: ChosenModel;
  readonly context: PromptContext;
  readonly set: ToolSet;
  readonly lent: LentCapabilities;
}

function summaryFailed(error: unknown): string {
  const why = error instanceof ModelError ? whyItFailed(error) : 'it did not answer in time or gave no summary';
  return `The model could not shorten the conversation: ${why}. Its most telling sentences were kept instead, and the turn went on.`;
}

/** Ends the conversation where it stands; the user's message is in it, whatever happened. */
async function endEarly(run: TurnRun, conversation: Conversation, outcome: TurnOutcome): Promise<TurnOutcome> {
  // What a person was to say is no user's message, and a retraction says nothing.
  if (!conversation.hasPrompt && run.turn.origin !== 'person' && run.turn.origin !== 'retraction')
    conversation.apply(await promptStep([{ turn: run.turn }], { timezone: undefined }, async ({ id }) => run.scope.uploads.text(id)));
  breakOff({ conversation, writer: run.writer, startedCalls: run.openCalls }, noteFor(outcome));
  return outcome;
}

/** Does the owner read how it ends, and not a customer? */
async function isOwners({ scope, turn }: TurnRun): Promise<boolean> {
  const definition = await agentDefinition(scope, turn.agent);
  return turn.authority === 'admin' && definition?.access === 'admin';
}

/** As tools see it: what it was asked is the whole message, with the words of those that it answers, too, and the files that came with them. */
function askedRun(run: TurnRun, { prompt }: Conversation): TurnRun {
  if (prompt === undefined) return run;
  return { ...run, turn: { ...run.turn, text: prompt.text, attachments: prompt.attachments ?? [] } };
}

/** The turn that started this one has ended or is to end: nobody waits for the answer. */
async function isLeftBehind({ scope, turn: { grant } }: TurnRun): Promise<boolean> {
  if (grant === undefined) return false;
  return (await scope.inbox.read(grant.parentTurnId)) === undefined || (await scope.inbox.isCancelled(grant.parentTurnId));
}

/** Tools through which others are started: their own, and the command line of the sandbox. */
const starters: ReadonlySet<string> = new Set(['subagents', 'bash', 'exec', 'process']);

function mayHaveStartedOthers({ turn }: TurnRun, { messages, tally }: Conversation): boolean {
  const asked = (message: Session['messages'][number]): boolean =>
    message.role === 'assistant' && message.turnId === turn.turnId && message.toolCalls?.some(({ name }) => starters.has(name)) === true;
  return tally.steps.some(({ kind, name }) => kind === 'tool' && starters.has(name)) || messages.some(asked);
}

async function loadOrBegin({ scope, turn }: TurnRun): Promise<Session> {
  return (await scope.sessions.load(turn.sessionId)) ?? newSession(turn, new Date().toISOString());
}

function recordOf(session: Session, run: TurnRun): TurnRecord | undefined {
  return session.turns.findLast((record) => record.id === run.turn.turnId);
}

/** The session as the attempts before this one left it. */
function conversationOf(session: Session, run: TurnRun): Conversation {
  const conversation = new Conversation(session, run.turn.turnId);
  for (const step of run.steps) conversation.apply(step);
  return conversation;
}

async function promptStep(turns: readonly [PromptTurn, ...PromptTurn[]], facts: PromptFacts, readText: ReadText): Promise<TurnStep> {
  const joined = turns.slice(1).map(({ turn }) => turn.turnId);
  return { kind: 'prompt', message: await userMessageOf(turns, facts, readText), ...(joined.length > 0 && { joined }) };
}

function factsOf({ turn, attempt }: TurnRun): { turnId: string; accountId: string; attempt: number } {
  return { turnId: turn.turnId, accountId: turn.accountId, attempt };
}
