import { ToolError, type ToolAccess, type TurnCapabilities } from '@concierge/agent';
import type { Log } from '@concierge/runtime';
import type { TurnRun } from '@concierge/turn';
import {
  OutboundError,
  SearchError,
  splitPages,
  UnreadableError,
  type OpenPage,
  type OutboundPolicy,
  type WebPages,
  type WebSearch,
} from '@concierge/web';
import type { CapabilityFactories } from './turn-capabilities.ts';
import { AppError, isSharedPath, withoutEnding, type AcceptedTurn } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

export interface WebCapabilityOptions {
  readonly pages: WebPages;
  /** Undefined: the operator has configured none. */
  readonly search: WebSearch | undefined;
  readonly log: Log;
}

interface Reach {
  readonly pageCharacters: number;
  readonly resultsMax: number;
  readonly policy: Partial<OutboundPolicy>;
}

/** In every number a customer's agent has less than the owner's. */
export const reaches: Readonly<Record<ToolAccess, Reach>> = {
  // Three bytes a character at most in what is not ASCII, and the head of the result: under the cap of a tool's result.
  admin: { pageCharacters: 20_000, resultsMax: 20, policy: { maxBytes: 10 * 1024 * 1024, timeoutMs: 30_000, maxRedirects: 5 } },
  cs: { pageCharacters: 8000, resultsMax: 5, policy: { maxBytes: 2 * 1024 * 1024, timeoutMs: 15_000, maxRedirects: 3, httpsOnly: true } },
};

/** The web as each turn's agent may see it. */
export function createWeb(options: WebCapabilityOptions): CapabilityFactories['web'] {
  return (run, { access }) => new TurnWeb(options, run, access);
}

class TurnWeb {
  readonly #options: WebCapabilityOptions;
  readonly #run: TurnRun;
  readonly #access: ToolAccess;
  /** Undefined: every public address is open. */
  readonly #mentioned: UrlAllowlist | undefined;

  constructor(options: WebCapabilityOptions, run: TurnRun, access: ToolAccess) {
    this.#options = options;
    this.#run = run;
    this.#access = access;
    this.#mentioned = access === 'cs' ? new UrlAllowlist(run) : undefined;
  }

  readonly fetchPage: TurnCapabilities['fetchPage'] = async (url, { page, signal }) => {
    const { pageCharacters } = reaches[this.#access];
    const document = await readable(this.#options.pages.open({ url, ...(await this.#terms(url)), signal }));
    const texts = splitPages(document.text, pageCharacters);
    const text = texts[page - 1];
    if (text === undefined) throw new ToolError(`The document has ${String(texts.length)} pages; there is no page ${String(page)}.`);
    return { ...document, text, page, pages: texts.length };
  };

  /**
   * Customers cannot make an agent open what the operator allowed beside the public web: the owner can, by naming it.
   */
  async #terms(url: string): Promise<Pick<OpenPage, 'tenantId' | 'reader' | 'policy'>> {
    const { policy } = reaches[this.#access];
    const { tenantId } = this.#run.turn;
    if (this.#mentioned === undefined) return { tenantId, reader: tenantId, policy };
    const by = await this.#mentioned.namedBy(url);
    if (by === undefined) throw new ToolError(NOT_MENTIONED);
    const publicOnly = by !== 'owner';
    return { tenantId, reader: `${tenantId}/cs/${publicOnly ? 'public' : 'own'}`, policy: { ...policy, publicOnly } };
  }

  readonly searchWeb: TurnCapabilities['searchWeb'] = async (query, { count, signal }) => {
    const { search } = this.#options;
    if (search === undefined) throw new ToolError(NO_SEARCH);
    try {
      const hits = await search.search({ query, count: Math.min(count, reaches[this.#access].resultsMax) }, signal);
      for (const { url } of hits) this.#mentioned?.add(url);
      return hits;
    } catch (error) {
      if (!(error instanceof SearchError)) throw error;
      const { turnId, tenantId } = this.#run.turn;
      this.#options.log.warn({ turnId, tenantId, failure: error.failure, err: error.cause }, 'web search failed');
      throw new ToolError(error.message, { cause: error });
    }
  };
}

const NO_SEARCH =
  'No web search is configured here: the operator has not set WEB_SEARCH_PROVIDER. Do not try again; say so, or use web_fetch with an address that you were given.';

const NOT_MENTIONED =
  'This address is not open here. You can open addresses that the customer wrote, that web_search found in this turn, or on sites that the business’s own files name, each exactly as it is written there. Ask the customer for the address, or search.';

/** The model reads what keeps a page from being read. */
async function readable<Result>(task: Promise<Result>): Promise<Result> {
  try {
    return await task;
  } catch (error) {
    if (error instanceof OutboundError || error instanceof UnreadableError) {
      throw new ToolError(`The page cannot be read: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

const FILES_MAX = 500;
const FILE_MAX_BYTES = 256 * 1024;
const URLS_MAX = 5000;
/** A longer address is never allowed. */
const ADDRESS_MAX_CHARACTERS = 4096;

/** Addresses with their scheme only: `prices.md` in an owner's file is a file, and also a possible domain. */
const wholeAddress = /\bhttps?:\/\/[^\s<>"'`\\^{}|]+/giu;
const bareAddress = /(?<![\w@./:-])(?:[a-z0-9](?:[a-z0-9-]{0,62})\.)+[a-z]{2,24}(?:\/[^\s<>"'`\\^{}|]*)?/giu;

interface UrlAllowlistOptions {
  readonly scope: Pick<TenantScope, 'agents' | 'files' | 'context' | 'sessions'>;
  readonly turn: Pick<AcceptedTurn, 'agent' | 'sessionId' | 'preface' | 'text'>;
}

/**
 * The addresses that a customer's agent may open: what the customer wrote and what a search of this turn found, to the
 * letter; and whatever is on a host that the owner's files name. So an address that the agent was talked into making
 * up, with what it knows in it, leads nowhere. What the agent itself wrote or may have written (its replies, its notes,
 * results of its tools) is no mention.
 */
export class UrlAllowlist {
  readonly #options: UrlAllowlistOptions;
  readonly #found = new Set<string>();
  #spoken: Promise<ReadonlySet<string>> | undefined;
  #hosts: Promise<ReadonlySet<string>> | undefined;

  constructor(options: UrlAllowlistOptions) {
    this.#options = options;
  }

  /** An address that a search answered with. */
  add(address: string): void {
    const url = URL.parse(address);
    if (url !== null) this.#found.add(toWording(url));
  }

  /** Who named it, the owner before others; undefined: no one. */
  async namedBy(address: string): Promise<'owner' | 'customer' | 'search' | undefined> {
    const url = URL.parse(address);
    if (url === null) return undefined;
    this.#hosts ??= this.#ownersHosts();
    if ((await this.#hosts).has(url.host)) return 'owner';
    if (this.#found.has(toWording(url))) return 'search';
    this.#spoken ??= this.#spokenAddresses();
    return (await this.#spoken).has(toWording(url)) ? 'customer' : undefined;
  }

  async #spokenAddresses(): Promise<ReadonlySet<string>> {
    const { scope, turn } = this.#options;
    const session = await scope.sessions.load(turn.sessionId);
    const earlier = (session?.messages ?? []).flatMap((message) => (message.role === 'user' ? [message.text] : []));
    return new Set(
      [turn.text, turn.preface ?? '', ...earlier].flatMap((text) => [...addressesIn(text), ...bareAddressesIn(text)]).map(toWording),
    );
  }

  /**
   * Hosts in all files of the owner's that the customer's agent can read; notes about contacts and the owner's own
   * notes are not searched.
   */
  async #ownersHosts(): Promise<ReadonlySet<string>> {
    const { scope, turn } = this.#options;
    const context = await scope.context.load({ agent: turn.agent, sender: null, memory: 'contact' });
    const texts = [...context.files.map(({ text }) => text), ...(await this.#ownPart())];
    for (const folder of ['skills', 'templates']) texts.push(...(await this.#textsUnder(folder)));
    return new Set(texts.flatMap(addressesIn).map(({ host }) => host));
  }

  /** What an agent of the tenant's own is told beside the context files. */
  async #ownPart(): Promise<string[]> {
    const { scope, turn } = this.#options;
    const found = await scope.agents.find(turn.agent);
    return found !== undefined && 'agent' in found ? [found.agent.body] : [];
  }

  async #textsUnder(folder: string): Promise<string[]> {
    const { files } = this.#options.scope;
    const isHidden = (path: string): boolean => !isSharedPath(path);
    const entries = (await orNothing(files.list(folder, { recursive: true, limit: FILES_MAX, isHidden }))) ?? [];
    const texts: string[] = [];
    for (const { kind, path, size } of entries) {
      if (kind !== 'file' || size > FILE_MAX_BYTES) continue;
      const file = await orNothing(files.readText(path, { maxBytes: FILE_MAX_BYTES }));
      if (file !== undefined) texts.push(file.text);
    }
    return texts;
  }
}

/** The address as it counts: with whatever it carries, whichever scheme, slash or fragment it is written with. */
function toWording(url: URL): string {
  return `${url.host}${url.pathname.replace(/\/$/u, '')}${url.search}`;
}

function addressesIn(text: string): URL[] {
  return readAddresses(text, (written) => matchAddresses(written, wholeAddress));
}

function bareAddressesIn(text: string): URL[] {
  return readAddresses(text, (written) => matchAddresses(written, bareAddress).map((address) => `https://${address}`));
}

function matchAddresses(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].slice(0, URLS_MAX).map(([address]) => address);
}

/** What sentences and Markdown put behind an address. */
const ends = '.,;:!?)]*_~';

/** Marks beyond ASCII, such as `。`, `”` and `—`: sentences have them behind an address without a space between. */
const foreignMarks = /[^\p{ASCII}\p{L}\p{M}\p{N}]/gu;
/** Letters of scripts in which a sentence goes on behind an address without a space. */
const unspacedLetters = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/gu;
/** Letters may belong to the host itself; what is cut within it would be another host. */
const goesBehindHost = /^https?:\/\/[^/?#]+[/?#]/iu;

/**
 * As they are written and, since sentences end or go on and Markdown closes, without what may belong to those. The next
 * address may stand behind that, in a text without any space.
 */
function readAddresses(text: string, find: (written: string) => string[]): URL[] {
  const marked = text.replaceAll(foreignMarks, ' ');
  const spaced = marked.replaceAll(unspacedLetters, ' ');
  const cut = spaced === marked ? [] : find(spaced).filter((address) => goesBehindHost.test(address));
  const readings = [...new Set([...[...new Set([text, marked])].flatMap((written) => find(written)), ...cut])];
  const fitting = readings.filter(({ length }) => length <= ADDRESS_MAX_CHARACTERS);
  const candidates = new Set(fitting.flatMap((reading) => [reading, withoutEnding(reading, ends)]));
  return [...candidates].flatMap((candidate) => URL.parse(candidate) ?? []);
}

/** undefined for what is not there, or is no text. */
async function orNothing<Result>(task: Promise<Result>): Promise<Result | undefined> {
  try {
    return await task;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
