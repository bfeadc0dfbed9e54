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
import { UrlAllowlist } from './url-allowlist.ts';
import type { CapabilityFactories } from './turn-capabilities.ts';

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
