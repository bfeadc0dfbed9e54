import { type AcceptedTurn, ProvidersFile, type Session, type ToolMessage, type TurnEvent, type TurnStep } from '@concierge/contract';
import { resolveProviders } from '@concierge/model';
// eslint-disable-next-line no-restricted-imports -- this is a wire.ts for tests: it chooses the adapter
import { Models } from '@concierge/model/openai';
import { newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import {
  callTools,
  say,
  silentLog as log,
  startScriptedModel,
  TestTenants,
  type RecordedRequest,
  type ScriptedModel,
  type ScriptedModelOptions,
} from '@concierge/testing';
import type { TurnRun } from '@concierge/turn';
import { UploadTexts } from '@concierge/upload';
import { DocumentReader } from '@concierge/web';
import type { CapabilityFactories } from '../src/capabilities/turn-capabilities.ts';
import { unconnected } from '../src/fixtures/unconnected.ts';
import { TurnMetrics } from '../src/metrics.ts';
import { TurnRunner, type TurnRunnerOptions } from '../src/turn/turn-runner.ts';

/** Where a turn's events and steps go. */
class Voice {
  readonly events: TurnEvent[] = [];
  readonly steps: TurnStep[] = [];

  emit(event: TurnEvent): void {
    this.events.push(event);
  }

  record(step: TurnStep): void {
    this.steps.push(step);
  }

  async step(step: TurnStep, events: readonly TurnEvent[] = []): Promise<void> {
    this.steps.push(step);
    this.events.push(...events);
    return Promise.resolve();
  }

  async persist(): Promise<void> {
    return Promise.resolve();
  }

  async flush(): Promise<void> {
    return Promise.resolve();
  }
}

export interface ToolUse {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** A turn that has ended. */
export interface PlayedTurn {
  readonly session: Session;
  /** Results of this turn, in order. */
  readonly results: readonly ToolMessage[];
  readonly steps: readonly TurnStep[];
  /** What the provider was sent, call by call. */
  readonly requests: readonly RecordedRequest[];
}

const uploadTexts = new UploadTexts({ documents: new DocumentReader(), log });
const capabilityFactories: CapabilityFactories = {
  ...unconnected,
  readUpload:
    ({ scope }) =>
    async (upload, signal) =>
      uploadTexts.read(scope, upload, signal),
};

/**
 * Whole turns of the tenant `acme`: runner, tenant's files, and a model provider over HTTP that calls what the test
 * names.
 */
export class TestRunner implements AsyncDisposable {
  readonly scope: TenantScope;
  /** Turns that wait behind the one that is played. */
  behind: readonly string[] = [];
  readonly #model: ScriptedModel;
  readonly #clearing: AsyncDisposableStack;
  readonly #parts: Pick<TurnRunnerOptions, 'tools' | 'channels'>;
  readonly #runners: Readonly<Record<'seeing' | 'blind', TurnRunner>>;
  #turns = 0;

  private constructor(made: {
    scope: TenantScope;
    model: ScriptedModel;
    clearing: AsyncDisposableStack;
    parts: Pick<TurnRunnerOptions, 'tools' | 'channels'>;
  }) {
    this.scope = made.scope;
    this.#model = made.model;
    this.#clearing = made.clearing;
    this.#parts = made.parts;
    this.#runners = { seeing: this.#newRunner(true), blind: this.#newRunner(false) };
  }

  /** `parts`: what the turns have beside ours; `script`: what the model does by itself. */
  static async start(parts: Pick<TurnRunnerOptions, 'tools' | 'channels'> = {}, script: ScriptedModelOptions = {}): Promise<TestRunner> {
    await using opened = new AsyncDisposableStack();
    const scope = await opened.use(await TestTenants.start()).scope();
    const model = opened.use(await startScriptedModel(script));
    return new TestRunner({ scope, model, clearing: opened.move(), parts });
  }

  newSessionId(): string {
    this.#turns += 1;
    return this.#turns.toString(16).padStart(32, '0');
  }

  /** Puts a turn into the inbox. @returns its id */
  async accept(turnId: string, facts: Partial<AcceptedTurn>): Promise<string> {
    await this.scope.inbox.accept(acceptedTurn(turnId, facts), { isUnique: true });
    return turnId;
  }

  /** A turn in which the model uses these tools, one per round, and then answers "done". */
  async play(uses: readonly ToolUse[], turn: Partial<AcceptedTurn> = {}, sight: 'seeing' | 'blind' = 'seeing'): Promise<PlayedTurn> {
    this.#turns += 1;
    const accepted = acceptedTurn(`t${String(this.#turns)}`, { sessionId: this.#turns.toString(16).padStart(32, '0'), ...turn });
    return this.#run(accepted, { uses, sight, steps: [] });
  }

  /** The same turn again after a crash that left `steps`: what the model still uses comes after them. */
  async resume(session: Session, rest: { readonly steps: readonly TurnStep[]; readonly uses: readonly ToolUse[] }): Promise<PlayedTurn> {
    const accepted = acceptedTurn(session.turns.at(-1)?.id ?? '', { sessionId: session.id });
    await this.scope.removeSession(session.id);
    return this.#run(accepted, { ...rest, sight: 'seeing' });
  }

  async #run(
    turn: AcceptedTurn,
    { uses, sight, steps }: { uses: readonly ToolUse[]; sight: 'seeing' | 'blind'; steps: readonly TurnStep[] },
  ): Promise<PlayedTurn> {
    this.#model.enqueue(...uses.map(({ name, input }) => [callTools([{ name, args: input }])]), [say('done')]);
    const before = this.#model.requests.length;
    const voice = new Voice();
    const end = await this.#runners[sight].runTurn(this.#buildRun(turn, voice, steps));
    const session = await this.scope.sessions.load(turn.sessionId);
    if (session === undefined || end.event.type !== 'done') throw new Error(`the turn ended in ${JSON.stringify(end)}`);
    const results = session.messages.flatMap((message) => (message.role === 'tool' && message.turnId === turn.turnId ? [message] : []));
    return { session, results, steps: voice.steps, requests: this.#model.requests.slice(before) };
  }

  #buildRun(turn: AcceptedTurn, writer: Voice, steps: readonly TurnStep[]): TurnRun {
    return {
      scope: this.scope,
      turn,
      attempt: steps.length === 0 ? 1 : 2,
      startedAtMs: Date.now(),
      steps,
      reset: null,
      openCalls: new Set(),
      waitingBehind: async () => Promise.resolve(this.behind),
      handOn: async () => Promise.resolve(),
      signal: new AbortController().signal,
      writer,
    };
  }

  #newRunner(images: boolean): TurnRunner {
    const file = ProvidersFile.parse({
      default: 'scripted/m',
      providers: { scripted: { baseUrl: this.#model.url, apiKey: 'sk-test', models: { m: { images } } } },
    });
    const models = new Models({ providers: resolveProviders(file, () => undefined) });
    this.#clearing.defer(() => models.close());
    const metrics = new TurnMetrics(newMetrics('test'), () => 0);
    return new TurnRunner({ models, capabilityFactories, metrics, log, ...this.#parts });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#clearing.disposeAsync();
  }
}

function acceptedTurn(turnId: string, parts: Partial<AcceptedTurn>): AcceptedTurn {
  return {
    version: 1,
    turnId,
    tenantId: 'acme',
    sessionId: '0'.repeat(32),
    acceptedAtMs: Date.now(),
    origin: 'api',
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    sender: null,
    text: 'please',
    attachments: [],
    requestHash: 'h',
    keyId: 'k1',
    ...parts,
  };
}
