import { ProvidersFile } from '@concierge/contract';
import { resolveProviders, type ModelEvent, type ModelRequest } from '../src/index.ts';
import { Models, type FailedAttempt, type ModelHealth, type ModelLimits } from '../src/openai/index.ts';

export const API_KEY = 'sk-test-0123456789';

interface FixtureOptions {
  /** Base URLs: the first is the default, the rest are fallbacks. */
  readonly urls: readonly string[];
  readonly limits?: Partial<ModelLimits>;
  readonly health?: ModelHealth;
  readonly facts?: Record<string, unknown>;
  /** Facts of the default model alone. */
  readonly firstFacts?: Record<string, unknown>;
}

/** Models over scripted servers, as providers p0, p1 … with long patience. */
export function modelsOver({ urls, limits, health, facts, firstFacts = facts }: FixtureOptions): {
  models: Models;
  failures: FailedAttempt[];
} {
  const providers = Object.fromEntries(
    urls.map((baseUrl, index) => [
      `p${String(index)}`,
      { baseUrl, apiKey: API_KEY, models: { m: (index === 0 ? firstFacts : facts) ?? {} } },
    ]),
  );
  const [first, ...fallbacks] = Object.keys(providers).map((name) => `${name}/m`);
  const file = ProvidersFile.parse({ default: first, fallbacks, providers });
  const failures: FailedAttempt[] = [];
  const models = new Models({
    providers: resolveProviders(file, () => undefined),
    limits: { headersMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, afterFinishMs: 60_000, backoffMs: 5, ...limits },
    onFailedAttempt: (failure) => failures.push(failure),
    health,
  });
  return { models, failures };
}

export function asking(text: string, rest: Partial<ModelRequest> = {}): ModelRequest {
  return { system: 'You are a test.', messages: [{ role: 'user', content: text }], tools: [], ...rest };
}

export async function collectEvents(stream: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** The last event, which must be the end. */
export function findEnd(events: readonly ModelEvent[]): Extract<ModelEvent, { type: 'end' }> {
  const last = events.at(-1);
  if (last?.type !== 'end') throw new Error(`the last event is ${last?.type ?? 'none'}`);
  return last;
}

/** What a listener is left with: deltas since the last reset. */
export function heard(events: readonly ModelEvent[]): string {
  return events.reduce((text, event) => {
    if (event.type === 'reset') return '';
    return event.type === 'text' ? text + event.delta : text;
  }, '');
}

export const neverAborted: AbortSignal = new AbortController().signal;
