import {
  allTools,
  buildSystemPrompt,
  buildUserMessage,
  Dispatcher,
  compact,
  mayNeedRoom,
  TurnTools,
  toolScope,
  ToolRegistry,
  type Conversation,
  type LoopRun,
  type PromptFacts,
  type PromptTurn,
  type PromptTurns,
  type ReadText,
  type Tool,
  type TurnCapabilities,
} from '@concierge/agent';
import { limits, type ModelFacts, type Session, type TenantSettings, type TurnStep } from '@concierge/contract';
import { ModelError, type Model, type OwnKeys } from '@concierge/model';
import { answerDeadline, failpoint, Slots, type Log } from '@concierge/runtime';
import type { Budgets, TurnBudget, TurnRun } from '@concierge/turn';
import { withBudget } from './budgeted-model.ts';
import { OpenedCapabilities, type CapabilityFactories, type McpTools } from '../capabilities/turn-capabilities.ts';
import type { WorkerChannels } from '../channels/channels.ts';
import type { HandoffCommands } from './handoff-commands.ts';
import { collectTurns, type TurnsToAnswer } from './collected-turns.ts';
import { SessionImages } from './session-images.ts';
import {
  contextBudget,
  listPromptParts,
  promptContext,
  turnAgent,
  turnStatus,
  warnOfSmallWindow,
  type PromptContext,
  type TurnAgent,
} from './turn-agent.ts';
import { toTraceparent } from '../trace/turn-spans.ts';
import { whyItFailed } from './ended-session.ts';
import type { ReportWarning } from './turn-warnings.ts';

/** A model as the runner needs it: what it is, and how much it takes. */
export interface ChosenModel extends Model {
  readonly ref: string;
  readonly facts: ModelFacts;
  /** The tenant's own keys pay for every call of it. */
  readonly ownKey?: boolean;
}

/** The models that turns may have. */
export interface ModelChoice {
  /**
   * The model of this reference with its fallbacks; the deployment's default when undefined. `own`: the tenant's keys.
   * @throws ModelError
   */
  forRef(ref: string | undefined, own?: OwnKeys): ChosenModel;
}

/** Where a turn's tools come from. */
export interface ToolSources {
  /** All of them unless given. */
  readonly builtIn?: readonly Tool[];
  /** Tools of servers that the tenant has attached to the turn's agent; without it there are none. */
  readonly attached?: Pick<McpTools, 'listTools'>;
}

/** What turns need that came from a channel; without `fetchFiles` and `showTyping` nothing is fetched or shown. */
export interface ChannelParts extends Partial<WorkerChannels> {
  /** Commands of staff that answer in the agent's place; without it every text is plain text. */
  readonly commands?: Pick<HandoffCommands, 'run'>;
}

export interface TurnPreparationOptions {
  readonly models: ModelChoice;
  readonly tools?: ToolSources;
  readonly capabilityFactories: CapabilityFactories;
  readonly channels?: ChannelParts;
  /** What tenants may spend on model calls; without it there are no bounds. */
  readonly budgets?: Pick<Budgets, 'forTurn'>;
  /** Ended turns are exported: providers are told of the turn's span. */
  readonly spans?: object | undefined;
  /** Reports problems that do not end the turn to the owner and the operator. */
  readonly warn?: ReportWarning;
  readonly log: Log;
}

/** A turn that can run: its loop, and what is open for it until it is disposed. */
export interface PreparedTurn extends AsyncDisposable {
  readonly loop: LoopRun;
}

/** What a turn begins with: the session as it was before it, and the settings in force. */
interface TurnStart {
  readonly session: Session;
  readonly settings: TenantSettings;
}

interface AskedPrompt extends PromptFacts {
  readonly turns: TurnsToAnswer;
}

interface ModelAsked {
  readonly ref: string | undefined;
  readonly settings: TenantSettings;
  readonly conversation: Conversation;
}

interface ModelOfTurn {
  readonly model: ChosenModel;
  readonly budget: TurnBudget | undefined;
}

/** All attachments of a message; one that is not read by then is left to `view_attachment`. */
const READ_TIMEOUT_MS = 40_000;
const TOOL_SETS_MAX = 1000;

/** Makes turns ready for the agent loop: agent, model, prompt, tools and capabilities. */
export class TurnPreparation {
  readonly #options: TurnPreparationOptions;
  readonly #tools: readonly Tool[];
  readonly #toolRegistries = new Map<string, { readonly attached: readonly Tool[]; readonly registry: ToolRegistry }>();

  constructor(options: TurnPreparationOptions) {
    this.#options = options;
    this.#tools = options.tools?.builtIn ?? allTools;
  }

  /**
   * Adds the user's message to the conversation where it is not in it yet. The typing indicator is shown until the turn
   * is disposed.
   */
  async prepareTurn(run: TurnRun, conversation: Conversation, { session, settings }: TurnStart): Promise<PreparedTurn> {
    const { channels, warn, capabilityFactories } = this.#options;
    const begunAt = new Date();
    // A turn that ends before it has begun ends alone: those that it would collect get their own answers.
    if (!conversation.hasPrompt) run.signal.throwIfAborted();
    const turns: TurnsToAnswer = run.turn.collects === true ? await collectTurns(run, session, conversation) : [run.turn];
    await using stack = new AsyncDisposableStack();
    if (run.turn.channelMessage !== undefined) stack.use(channels?.showTyping?.(run, turns));
    const agent = await turnAgent(run, settings);
    const { model, budget } = await this.#chooseModel(run, { ref: agent.model, settings, conversation });
    const context = await promptContext(run, { agent, facts: model.facts, warn });
    const heartbeat = { now: context.heartbeat, known: conversation.heartbeat };
    if (!conversation.hasPrompt) await this.addPrompt(run, conversation, { turns, heartbeat, timezone: settings.timezone });
    const asked = withWholeMessage(run, conversation);
    const toolRegistry = await this.#findToolSet(asked, agent);
    const capabilities = stack.use(
      new OpenedCapabilities({
        factories: capabilityFactories,
        run: asked,
        rights: { access: agent.access, tools: toolRegistry.names },
        newDispatcher: () => new Dispatcher({ ...loop, newSlots: () => new Slots(limits.nestedCallsAtOnce) }),
      }),
    );
    const loop: LoopRun = this.#buildLoop(asked, conversation, { settings, agent, model, budget, context, toolRegistry, capabilities });
    const parts = listPromptParts({ context, agent, tools: toolRegistry, conversation });
    const facts = { at: begunAt.toISOString(), ms: Math.max(0, Date.now() - begunAt.getTime()), parts };
    conversation.tally.prompt = { facts, model: model.ref };
    const opened = stack.move();
    return { loop, [Symbol.asyncDispose]: async () => opened.disposeAsync() };
  }

  async #chooseModel(run: TurnRun, { ref, settings, conversation }: ModelAsked): Promise<ModelOfTurn> {
    const model = this.#options.models.forRef(ref, await run.scope.openModelKeys());
    const budget = this.#options.budgets?.forTurn(run, settings, conversation.tally.models);
    // A budget is of what the operator pays.
    return { model: budget === undefined || model.ownKey === true ? model : withBudget(model, budget), budget };
  }

  /** Adds the user's message: once, and journaled as it was. */
  async addPrompt(run: TurnRun, conversation: Conversation, { turns, ...facts }: AskedPrompt): Promise<void> {
    const step = await this.buildPrompt(run, turns, facts);
    conversation.apply(step);
    run.writer.record(step);
  }

  /** Fetches, keeps and reads what came with the messages before the model gets them. */
  async buildPrompt(run: TurnRun, turns: TurnsToAnswer, facts: PromptFacts): Promise<TurnStep> {
    let signal: AbortSignal | undefined;
    const readText: ReadText = async (upload) => {
      signal ??= AbortSignal.any([run.signal, answerDeadline(READ_TIMEOUT_MS)]);
      const text = await this.#options.capabilityFactories.readUpload(run)(upload, signal);
      run.signal.throwIfAborted();
      return text;
    };
    const [head, ...collected] = turns;
    const isFromChannel = turns.some(({ channelMessage }) => channelMessage !== undefined);
    const files = isFromChannel ? await this.#options.channels?.fetchFiles?.(run, turns) : undefined;
    const withFiles = (turn: PromptTurn['turn']): PromptTurn => ({ turn, files: files?.get(turn.turnId) });
    return promptStep([withFiles(head), ...collected.map(withFiles)], facts, readText);
  }

  /**
   * The one place that decides which tools a turn has: those of the registry and of attached servers that its agent's
   * access and every list allow. Turns of one kind of agent share a registry; one with attached tools has its own.
   */
  async #findToolSet(run: TurnRun, { name, access, allow }: TurnAgent): Promise<ToolRegistry> {
    const attached = (await this.#options.tools?.attached?.listTools(run)) ?? [];
    const key = JSON.stringify([access, allow, ...(attached.length > 0 ? [run.turn.tenantId, name] : [])]);
    const known = this.#toolRegistries.get(key);
    if (known !== undefined && isSame(known.attached, attached)) return known.registry;
    // The cache is bounded: allow-lists and attached tools are the tenants' own, and as many as there are tenants.
    if (this.#toolRegistries.size >= TOOL_SETS_MAX) this.#toolRegistries.clear();
    const registry = new ToolRegistry([...this.#tools, ...attached], access, allow);
    this.#toolRegistries.set(key, { attached, registry });
    return registry;
  }

  #buildLoop(
    run: TurnRun,
    conversation: Conversation,
    { settings, agent, model, budget: callBudget, context, toolRegistry, capabilities }: LoopParts,
  ): LoopRun {
    const { scope, turn, writer, signal } = run;
    const { maxTurns } = agent;
    const system = buildSystemPrompt(context);
    const budget = contextBudget(model.facts, system, toolRegistry);
    warnOfSmallWindow(run, { budget, model, warn: this.#options.warn });
    const status = turnStatus({ turn, conversation, budget, model, maxTurns, timezone: settings.timezone });
    const tools = this.#openTools(run, { agent, toolRegistry, capabilities, status, budget: callBudget, showsImages: model.facts.images });
    const images = model.facts.images ? new SessionImages(scope.uploads) : undefined;
    const onFallback = (error: unknown): void => this.#reportDigest(run, error);
    return {
      conversation,
      agent: {
        model,
        system,
        maxTurns,
        traceparent: this.#options.spans === undefined ? undefined : toTraceparent(turn),
        loadImages: async (messages) => images?.loadImages(messages) ?? new Map(),
      },
      tools,
      signal,
      writer,
      compact: async (reason) =>
        (reason === 'overflowed' || mayNeedRoom(conversation, budget)) &&
        compact({ conversation, model, budget, writer, signal, onFallback }, reason),
      handOn: async () => run.handOn(),
      startedCalls: run.openCalls,
    };
  }

  #openTools(run: TurnRun, { agent, toolRegistry, capabilities, status, budget, showsImages }: ToolParts): TurnTools {
    const { scope, turn } = run;
    const { access, allow } = agent;
    const reach = { scope, turn, access, allow, capabilities, status, showsImages };
    return new TurnTools({
      set: toolRegistry,
      contextFor: (call) => toolScope(reach, call),
      onFailure: ({ tool, error }) => {
        this.#options.log.error({ ...logFacts(run), tool, err: error }, 'tool failed inside the service');
      },
      budget,
    });
  }

  #reportDigest(run: TurnRun, error: unknown): void {
    const { log, warn } = this.#options;
    log.warn({ ...logFacts(run), err: error }, 'no summary could be had, sentences of the conversation were kept');
    const why = error instanceof ModelError ? whyItFailed(error) : 'it did not answer in time or gave no summary';
    const message = `The model could not shorten the conversation: ${why}. Its most telling sentences were kept instead, and the turn went on.`;
    warn?.(run, { code: 'summary_failed', message });
  }
}

function isSame(tools: readonly Tool[], others: readonly Tool[]): boolean {
  return tools.length === others.length && tools.every((tool, index) => tool === others[index]);
}

interface LoopParts {
  readonly settings: TenantSettings;
  readonly agent: TurnAgent;
  readonly model: ChosenModel;
  readonly budget: TurnBudget | undefined;
  readonly context: PromptContext;
  readonly toolRegistry: ToolRegistry;
  readonly capabilities: OpenedCapabilities;
}

interface ToolParts extends Pick<LoopParts, 'agent' | 'toolRegistry'> {
  readonly capabilities: TurnCapabilities;
  readonly status: ReturnType<typeof turnStatus>;
  readonly budget: TurnBudget | undefined;
  readonly showsImages: boolean;
}

/**
 * As tools see it: what it was asked is the whole message, with the text and the files of the turns that are answered
 * with it.
 */
function withWholeMessage(run: TurnRun, { prompt }: Conversation): TurnRun {
  if (prompt === undefined) return run;
  return { ...run, turn: { ...run.turn, text: prompt.text, attachments: prompt.attachments ?? [] } };
}

export async function promptStep(turns: PromptTurns, facts: PromptFacts, readText: ReadText): Promise<TurnStep> {
  const joined = turns.slice(1).map(({ turn }) => turn.turnId);
  return { kind: 'prompt', message: await buildUserMessage(turns, facts, readText), ...(joined.length > 0 && { joined }) };
}

export function logFacts({ turn, attempt }: TurnRun): { turnId: string; tenantId: string; attempt: number } {
  return { turnId: turn.turnId, tenantId: turn.tenantId, attempt };
}

/** The tools with the named places between intent, call and result where tests break the process. */
export function withToolFailpoints(tools: readonly Tool[]): Tool[] {
  return tools.map((tool) => ({
    ...tool,
    run: async (input, context) => {
      await failpoint('tool.after-intent');
      const output = await tool.run(input, context);
      await failpoint('tool.before-result');
      return output;
    },
  }));
}

/** Models with the named place after a whole reply, before anything of it is journaled. */
export function withModelFailpoint(models: ModelChoice): ModelChoice {
  return { forRef: (ref, own) => withFailpoint(models.forRef(ref, own)) };
}

function withFailpoint(model: ChosenModel): ChosenModel {
  return {
    ref: model.ref,
    facts: model.facts,
    ...(model.ownKey !== undefined && { ownKey: model.ownKey }),
    isContextOverflow: (error) => model.isContextOverflow(error),
    async *stream(request, signal) {
      for await (const event of model.stream(request, signal)) {
        if (event.type === 'end') await failpoint('model.after-reply');
        yield event;
      }
    },
  };
}
