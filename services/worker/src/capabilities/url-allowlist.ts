import { AppError, withoutEnding, type AcceptedTurn } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

const FILES_MAX = 500;
const FILE_MAX_BYTES = 256 * 1024;
const URLS_MAX = 5000;
/** A longer address is never allowed. */
const ADDRESS_MAX_CHARACTERS = 4096;

/** Addresses with their scheme only: `prices.md` in an owner's file is a file, and also a possible domain. */
const wholeAddress = /\bhttps?:\/\/[^\s<>"'`\\^{}|]+/giu;
const bareAddress = /(?<![\w@./:-])(?:[a-z0-9](?:[a-z0-9-]{0,62})\.)+[a-z]{2,24}(?:\/[^\s<>"'`\\^{}|]*)?/giu;

export interface UrlAllowlistOptions {
  readonly scope: Pick<TenantScope, 'files' | 'context' | 'sessions'>;
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
    if (url !== null) this.#found.add(wordingOf(url));
  }

  /** Who named it, the owner before others; undefined: no one. */
  async namedBy(address: string): Promise<'owner' | 'customer' | 'search' | undefined> {
    const url = URL.parse(address);
    if (url === null) return undefined;
    this.#hosts ??= this.#ownersHosts();
    if ((await this.#hosts).has(url.host)) return 'owner';
    if (this.#found.has(wordingOf(url))) return 'search';
    this.#spoken ??= this.#spokenAddresses();
    return (await this.#spoken).has(wordingOf(url)) ? 'customer' : undefined;
  }

  async #spokenAddresses(): Promise<ReadonlySet<string>> {
    const { scope, turn } = this.#options;
    const session = await scope.sessions.load(turn.sessionId);
    const earlier = (session?.messages ?? []).flatMap((message) => (message.role === 'user' ? [message.text] : []));
    return new Set(
      [turn.text, turn.preface ?? '', ...earlier].flatMap((text) => [...addressesIn(text), ...bareAddressesIn(text)]).map(wordingOf),
    );
  }

  /**
   * Hosts in all files of the owner's that the customer's agent can read; notes about contacts and the owner's own
   * notes are not searched.
   */
  async #ownersHosts(): Promise<ReadonlySet<string>> {
    const { scope, turn } = this.#options;
    const context = await scope.context.load({ agent: turn.agent, sender: null, memory: 'contact' });
    const texts = context.files.map(({ text }) => text);
    for (const folder of ['skills', 'templates']) texts.push(...(await this.#textsUnder(folder)));
    return new Set(texts.flatMap(addressesIn).map(({ host }) => host));
  }

  async #textsUnder(folder: string): Promise<string[]> {
    const { files } = this.#options.scope;
    const entries = (await orNothing(files.list(folder, { recursive: true, limit: FILES_MAX }))) ?? [];
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
function wordingOf(url: URL): string {
  return `${url.host}${url.pathname.replace(/\/$/u, '')}${url.search}`;
}

function addressesIn(text: string): URL[] {
  return [...text.matchAll(wholeAddress)].slice(0, URLS_MAX).flatMap(([address]) => parsed(address));
}

function bareAddressesIn(text: string): URL[] {
  return [...text.matchAll(bareAddress)].slice(0, URLS_MAX).flatMap(([address]) => parsed(`https://${address}`));
}

/** What sentences and Markdown put behind an address. */
const ends = '.,;:!?)]*_~';

/** As it is written and, since sentences end and Markdown closes, without what may belong to those. */
function parsed(address: string): URL[] {
  if (address.length > ADDRESS_MAX_CHARACTERS) return [];
  return [address, withoutEnding(address, ends)].flatMap((candidate) => URL.parse(candidate) ?? []);
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
