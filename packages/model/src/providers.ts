import { readFile } from 'node:fs/promises';
import { ModelFacts, ProvidersFile } from '@concierge/contract';
import type { z } from 'zod';

/** One provider that can be called: it names a key that exists, or none because it needs none. */
export interface Provider {
  readonly name: string;
  readonly baseUrl: string;
  /** null: the provider asks for no key (for example a model server on the same machine). */
  readonly apiKey: string | null;
  readonly models: Readonly<Record<string, ModelFacts>>;
  /** The key is a tenant's own. */
  readonly ownKey?: true;
}

/** A `provider/model` that can be called. */
export interface UsableModel {
  readonly ref: string;
  readonly provider: Provider;
  /** What the provider calls the model. */
  readonly name: string;
  readonly facts: ModelFacts;
  /** The providers file itself describes the model; otherwise `facts` are cautious defaults. */
  readonly listed: boolean;
}

/** The model that makes vectors of texts; its provider may have no key for anything else. */
export interface EmbeddingsModel {
  readonly ref: string;
  /** What the provider calls the model. */
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKey: string | null;
  /** US dollars per million tokens. */
  readonly price?: { readonly input: number } | undefined;
}

export interface Providers {
  readonly default: string;
  readonly fallbacks: readonly string[];
  /** Only those that can be called, by name. */
  readonly usable: ReadonlyMap<string, Provider>;
  /** All of the file, for tenants with keys of their own. */
  readonly listed: ReadonlyMap<string, Omit<Provider, 'apiKey'>>;
  /** One line for each provider that cannot: for the log and `concierge doctor`. */
  readonly unusable: readonly string[];
  /** Null when none are configured, or their key is not there. */
  readonly embeddings: EmbeddingsModel | null;
}

/** A tenant's own keys, by provider; null: there is one, and it cannot be read. */
export type OwnKeys = ReadonlyMap<string, string | null>;

/** Looks up an environment variable. */
export type EnvironmentLookup = (name: string) => string | undefined;

/**
 * The providers file is no JSON, does not have its shape, or asks for a model that none of its providers has;
 * `problems` lists everything that is wrong, keys never quoted.
 */
export class ProvidersFileError extends Error {
  override readonly name = 'ProvidersFileError';
  readonly problems: readonly string[];

  constructor(path: string, problems: readonly string[]) {
    super(`${path}: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

/**
 * Reads providers.json (contract §1) and resolves its keys. Undefined when there is no such file.
 * Throws `ProvidersFileError` when it is not valid.
 */
export async function loadProviders(path: string, lookup: EnvironmentLookup): Promise<Providers | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  return resolveProviders(parseProviders(path, text), lookup);
}

/** The same from a file that has been parsed. */
export function resolveProviders(file: ProvidersFile, lookup: EnvironmentLookup): Providers {
  const usable = new Map<string, Provider>();
  const listed = new Map<string, Omit<Provider, 'apiKey'>>();
  const unusable: string[] = [];
  for (const [name, { baseUrl, models, ...key }] of Object.entries(file.providers)) {
    listed.set(name, { name, baseUrl, models });
    const apiKey = resolveKey(key, lookup);
    if (apiKey === undefined) unusable.push(`${name}: the environment variable ${key.apiKeyEnv ?? ''} is not set`);
    else usable.set(name, { name, baseUrl, apiKey, models });
  }
  return { default: file.default, fallbacks: file.fallbacks, usable, listed, unusable, embeddings: resolveEmbeddings(file, lookup) };
}

/**
 * What to use when no key is configured: the demo model at `baseUrl` (see `@concierge/model/demo`) and nothing else.
 */
export function demoProviders(baseUrl: string): Providers {
  const models = { demo: ModelFacts.parse({ images: false, price: { input: 0, output: 0 } }) };
  return {
    default: 'demo/demo',
    fallbacks: [],
    usable: new Map([['demo', { name: 'demo', baseUrl, apiKey: null, models }]]),
    listed: new Map(),
    unusable: [],
    embeddings: null,
  };
}

/**
 * Can the default model, or one of the fallbacks, be called at all? Does not check whether the provider accepts the
 * key.
 */
export function hasUsableKey(providers: Providers | undefined): boolean {
  if (providers === undefined) return false;
  return [providers.default, ...providers.fallbacks].some((ref) => findModel(providers, ref) !== undefined);
}

/**
 * Undefined when the provider is unknown or has no key. A model the file does not list gets default facts. `ownKey`: a
 * tenant's, in place of the operator's.
 */
export function findModel(providers: Providers, ref: string, ownKey?: string): UsableModel | undefined {
  const { providerName, modelName } = splitRef(ref);
  const provider = ownKey === undefined ? providers.usable.get(providerName) : openOwn(providers.listed.get(providerName), ownKey);
  if (provider === undefined || modelName === '') return undefined;
  const listed = Object.hasOwn(provider.models, modelName);
  const facts = (listed ? provider.models[modelName] : undefined) ?? ModelFacts.parse({});
  return { ref, provider, name: modelName, facts, listed };
}

function openOwn(provider: Omit<Provider, 'apiKey'> | undefined, apiKey: string): Provider | undefined {
  return provider && { ...provider, apiKey, ownKey: true };
}

export function toProviderName(ref: string): string {
  return splitRef(ref).providerName;
}

/** `openrouter/meta-llama/llama-4` is the model `meta-llama/llama-4` of `openrouter`. */
function splitRef(ref: string): { providerName: string; modelName: string } {
  const slash = ref.indexOf('/');
  return { providerName: ref.slice(0, Math.max(0, slash)), modelName: ref.slice(slash + 1) };
}

interface KeySource {
  readonly apiKey?: string | undefined;
  readonly apiKeyEnv?: string | undefined;
}

/** Undefined: a key is named but not there. Null: none is named. */
function resolveKey({ apiKey, apiKeyEnv }: KeySource, lookup: EnvironmentLookup): string | null | undefined {
  if (apiKey !== undefined) return apiKey;
  if (apiKeyEnv === undefined) return null;
  const found = lookup(apiKeyEnv)?.trim();
  return found === '' ? undefined : found;
}

function resolveEmbeddings({ embeddings, providers }: ProvidersFile, lookup: EnvironmentLookup): Providers['embeddings'] {
  if (embeddings === undefined) return null;
  const own = resolveKey(embeddings, lookup);
  if (own === undefined) return null;
  const { providerName, modelName } = splitRef(embeddings.model);
  const provider = providers[providerName];
  const apiKey = provider === undefined ? undefined : (own ?? resolveKey(provider, lookup));
  if (provider === undefined || apiKey === undefined) return null;
  return { ref: embeddings.model, name: modelName, baseUrl: provider.baseUrl, apiKey, price: embeddings.price };
}

function parseProviders(path: string, text: string): ProvidersFile {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    // The parser's message quotes the text around the fault, which may be a key.
    throw new ProvidersFileError(path, ['is not valid JSON']);
  }
  const parsed = ProvidersFile.safeParse(content);
  if (!parsed.success) throw new ProvidersFileError(path, parsed.error.issues.map(describeIssue));
  const unknown = findUnknownModels(parsed.data);
  if (unknown.length > 0) throw new ProvidersFileError(path, unknown);
  return parsed.data;
}

/**
 * A model that a tenant's file names may be one that the providers file does not list; those that answer everybody who
 * names none are in the same file as the lists, where a misspelt name is found before a turn fails.
 */
function findUnknownModels({ default: first, fallbacks, providers }: ProvidersFile): string[] {
  const asked: readonly (readonly [path: string, ref: string])[] = [
    ['default', first],
    ...fallbacks.map((ref, index): [string, string] => [`fallbacks.${String(index)}`, ref]),
  ];
  return asked.flatMap(([path, ref]) => {
    const { providerName, modelName } = splitRef(ref);
    const listed = Object.hasOwn(providers, providerName) ? Object.keys(providers[providerName]?.models ?? {}) : undefined;
    if (listed === undefined) return [`${path}: ${ref} is a model of no provider here (providers: ${listNames(Object.keys(providers))})`];
    if (listed.length === 0 || listed.includes(modelName)) return [];
    return [`${path}: ${ref} is not among the models of ${providerName} (models: ${listNames(listed)})`];
  });
}

function listNames(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}

function describeIssue(issue: z.core.$ZodIssue): string {
  return `${issue.path.join('.')}: ${issue.message}`;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
