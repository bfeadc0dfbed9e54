import {
  readQuestion,
  type FoundPassage,
  type PassageIndex,
  type PassageKind,
  type PassageRank,
  type PassageScope,
  type QuestionTerm,
  type TableDrift,
  tenantOwner,
} from '@concierge/index';
import { channelNames, type CallMeter, type Embedder } from '@concierge/contract';
import { KeyedMutex, type Log } from '@concierge/runtime';
import { LRUCache } from 'lru-cache';
import { fuseScores, MeaningSearch, type MeaningAnswer, type MeaningFound } from './meaning-search.ts';
import { meantTerms, Vocabulary } from './meant-words.ts';
import { MemoryReader, type MemoryReaderOptions, type Unread } from './memory-reader.ts';
import { scoreTexts, cutSnippet } from './rank-texts.ts';
import { toContactFolder, toNotesOwner, deriveSessionId } from '../sessions/session-ids.ts';

/** Who searches: the owner, or one contact in a turn of one agent. */
export type Searcher =
  | { readonly access: 'owner' }
  | { readonly access: 'contact'; readonly agent: string; readonly sender: string | null; readonly sessionId: string };

/**
 * What a searcher may find. The owner: the tenant's own notes and every conversation; what is kept about contacts is
 * theirs. A contact: its notes, and its own conversations with this agent, whose ids follow from who it is: there is no
 * list to filter, so nothing to forget.
 */
function buildPassageScope(searcher: Searcher, kinds: readonly PassageKind[]): PassageScope {
  if (searcher.access === 'owner') return { owner: tenantOwner, sessions: 'all', kinds };
  const { agent, sender, sessionId } = searcher;
  const own = sender === null ? [] : channelNames.map((channel) => deriveSessionId(agent, channel, sender));
  return { owner: toContactFolder(toNotesOwner(searcher)), sessions: [...new Set([...own, sessionId])], kinds };
}

export interface MemoryQuery {
  readonly text: string;
  readonly limit: number;
  /** Hits to leave out at the beginning. */
  readonly offset?: number;
  /** Default: both. */
  readonly kinds?: readonly PassageKind[] | undefined;
  readonly signal: AbortSignal;
  /** Of its requests for embeddings. */
  readonly meter?: CallMeter | undefined;
}

export interface MemoryHit {
  readonly kind: PassageKind;
  /** Path of the note, or id of the conversation. */
  readonly ref: string;
  readonly title: string;
  readonly heading: string;
  readonly at: string;
  /** A line of the note, the number of a message of the conversation. */
  readonly place: number;
  readonly snippet: string;
}

export interface MemoryAnswer {
  readonly hits: readonly MemoryHit[];
  /** Results of all pages. */
  readonly total: number;
  /** What has not been read yet, and so cannot be found. */
  readonly unread: Unread;
  /** By meaning, too? `off`: not configured. `failed`: not this time. */
  readonly meaning: 'off' | 'used' | 'failed';
  /** Passages that are found by their words only, for now. */
  readonly unembedded: number;
}

export interface MemorySearchOptions extends MemoryReaderOptions {
  readonly embedder: Embedder | undefined;
  readonly log: Log;
}

/** Passages whose words are compared with the question's: those that hold its rarer ones. */
const COMPARED_MAX = 600;
const RANKED_MAX = 100;
/** A long note must not fill the page. */
const PER_SOURCE_MAX = 2;
/** Passages whose words are known when a word of the question stands nowhere. */
const VOCABULARY_PASSAGES = 10_000;
/** Kept of all tenants of this process: some 30 MiB. */
const VOCABULARY_WORDS = 250_000;

interface KnownWords {
  /** Version of the passages that they were taken from. */
  readonly version: string;
  readonly vocabulary: Vocabulary;
}

/** By tenant and scope. */
const knownWords = new LRUCache<string, KnownWords>({
  maxSize: VOCABULARY_WORDS,
  sizeCalculation: ({ vocabulary }) => Math.max(1, vocabulary.size),
});

/** Finds notes and conversations by words and, where there is an embedder, by meaning. */
export class MemorySearch {
  readonly #passages: PassageIndex;
  readonly #reader: MemoryReader;
  readonly #meaning: MeaningSearch | undefined;
  readonly #refreshes = new KeyedMutex();
  readonly #tenantId: string;
  readonly #log: Log;

  constructor({ embedder, ...options }: MemorySearchOptions) {
    this.#tenantId = options.tenantId;
    this.#log = options.log;
    this.#passages = options.passages;
    this.#reader = new MemoryReader(options);
    this.#meaning = embedder && new MeaningSearch({ embedder, passages: options.passages, tenantId: options.tenantId, log: options.log });
  }

  /** Reads what changed since the last search, then searches. @throws AppError overloaded; the signal's reason */
  async search(searcher: Searcher, query: MemoryQuery): Promise<MemoryAnswer> {
    const scope = buildPassageScope(searcher, query.kinds ?? ['note', 'session']);
    // One after the other: who comes second finds everything read and embedded.
    const { unread, unembedded } = await this.#refreshes.run(scope.owner, async () => ({
      unread: await this.#reader.refresh(scope, query.signal),
      unembedded: (await this.#meaning?.embedMissing(scope, query)) ?? 0,
    }));
    const meant = await this.#meaning?.search(scope, query);
    const question = await this.#understand(scope, readQuestion(query.text));
    const byWords = await this.#byWords(scope, question);
    const ranks = meant === undefined ? fused(byWords, [], new Set()) : await this.#fused(scope, byWords, { ...meant, unembedded });
    const page = ranks.slice(query.offset ?? 0, (query.offset ?? 0) + query.limit);
    return {
      hits: await this.#hits(scope, page, question.terms),
      total: ranks.length,
      unread,
      meaning: meant?.outcome ?? 'off',
      unembedded,
    };
  }

  /**
   * Takes a note out of the index at once, after its file was removed. A failure is logged and no more: what is gone
   * from disk is not found by any later search either way.
   */
  async forgetNote(searcher: Searcher, ref: string): Promise<void> {
    await this.#forget(buildPassageScope(searcher, ['note']).owner, [ref]);
  }

  /** The same for notes about a contact, by the name of its folder. */
  async forgetContactNotes(folder: string, refs: readonly string[]): Promise<void> {
    await this.#forget(folder, refs);
  }

  async #forget(owner: string, refs: readonly string[]): Promise<void> {
    try {
      for (const ref of refs) await this.#passages.remove({ kind: 'note', owner, ref });
      await this.#passages.dropUnusedVectors();
    } catch (error) {
      this.#log.warn({ err: error }, 'a removed note stays in the index until the next search');
    }
  }

  /** Reads everything, as `reindex` wants it: what was thought current and was not. */
  async readAll(signal: AbortSignal, options: { readonly dryRun?: boolean } = {}): Promise<TableDrift> {
    return this.#reader.readAll(signal, options);
  }

  /** Words that stand nowhere are read as words that do: a typing error finds what was meant, a compound its parts. */
  async #understand(scope: PassageScope, terms: readonly QuestionTerm[]): Promise<Understood> {
    const counted = await this.#passages.countHolding(scope, terms);
    if (counted.size === 0 || counted.holding.every((count) => count > 0)) return { terms, ...counted };
    const known = await this.#vocabulary(scope);
    const understood = terms.flatMap((term, position) => (counted.holding[position] === 0 ? meantTerms(term, known) : [term]));
    return { terms: understood, ...(await this.#passages.countHolding(scope, understood)) };
  }

  async #vocabulary(scope: PassageScope): Promise<Vocabulary> {
    // First: words of passages that are read meanwhile are of a later version.
    const state = await this.#passages.state();
    const version = state === undefined ? '' : `${state.epoch} ${state.version}`;
    const key = JSON.stringify([this.#tenantId, scope]);
    const kept = knownWords.get(key);
    if (kept?.version === version) return kept.vocabulary;
    const vocabulary = new Vocabulary(await this.#passages.words(scope, VOCABULARY_PASSAGES));
    knownWords.set(key, { version, vocabulary });
    return vocabulary;
  }

  /**
   * Rare words choose what is compared, all words rank it: a question full of common words does not read the whole
   * memory.
   */
  async #byWords(scope: PassageScope, { terms, size, holding }: Understood): Promise<WordsFound[]> {
    const rarestFirst = [...terms.keys()]
      .filter((position) => (holding[position] ?? 0) > 0)
      .toSorted((one, other) => (holding[one] ?? 0) - (holding[other] ?? 0));
    const chosen: QuestionTerm[] = [];
    let expected = 0;
    for (const position of rarestFirst) {
      expected += holding[position] ?? 0;
      if (chosen.length > 0 && expected > COMPARED_MAX) break;
      chosen.push(...terms.slice(position, position + 1));
    }
    if (chosen.length === 0) return [];
    const held = await this.#passages.holding(scope, { terms: chosen, limit: COMPARED_MAX });
    const scores = scoreTexts(
      terms,
      held.map(({ words }) => words),
      { size, holding },
    );
    return [...held.entries()]
      .map(([position, rank]) => ({ rank, score: scores[position] ?? 0 }))
      .filter(({ score }) => score > 0)
      .toSorted((one, other) => other.score - one.score)
      .slice(0, RANKED_MAX);
  }

  async #fused(scope: PassageScope, byWords: readonly WordsFound[], meant: MeaningAnswer & { unembedded: number }): Promise<PassageRank[]> {
    const isComplete = meant.outcome === 'failed' || meant.unembedded === 0;
    const unembedded = isComplete ? undefined : await this.#meaning?.withoutVector(scope, byWords);
    return fused(byWords, meant.found, unembedded ?? new Set());
  }

  async #hits(scope: PassageScope, page: readonly PassageRank[], question: readonly QuestionTerm[]): Promise<MemoryHit[]> {
    const found = new Map(
      (
        await this.#passages.passages(
          scope,
          page.map(({ id }) => id),
        )
      ).map((passage) => [passage.id, passage]),
    );
    return page.flatMap(({ id }) => {
      const passage = found.get(id);
      return passage === undefined ? [] : [toMemoryHit(passage, question)];
    });
  }
}

interface Understood {
  readonly terms: readonly QuestionTerm[];
  readonly size: number;
  readonly holding: readonly number[];
}

interface WordsFound {
  readonly rank: PassageRank;
  readonly score: number;
}

/** Both lists in one; of equals the later first, and not too much of one source. */
function fused(byWords: readonly WordsFound[], byMeaning: readonly MeaningFound[], unembedded: ReadonlySet<number>): PassageRank[] {
  const ranks = new Map([...byMeaning, ...byWords.map(({ rank }) => rank)].map((rank) => [rank.id, rank]));
  const scores = fuseScores({
    byWords: byWords.map(({ rank, score }) => ({ key: rank.id, score })),
    byMeaning: byMeaning.map(({ id }) => id),
    unembedded,
  });
  const inOrder = [...ranks.values()].toSorted(
    (one, other) => (scores.get(other.id) ?? 0) - (scores.get(one.id) ?? 0) || laterFirst(one, other),
  );
  const perSource = new Map<string, number>();
  return inOrder.filter(({ kind, ref }) => {
    const source = `${kind} ${ref}`;
    perSource.set(source, (perSource.get(source) ?? 0) + 1);
    return (perSource.get(source) ?? 0) <= PER_SOURCE_MAX;
  });
}

function laterFirst(one: PassageRank, other: PassageRank): number {
  return other.atMs - one.atMs || (one.ref < other.ref ? -1 : one.ref > other.ref ? 1 : one.seq - other.seq);
}

function toMemoryHit({ kind, ref, title, heading, atMs, place, text }: FoundPassage, question: readonly QuestionTerm[]): MemoryHit {
  return { kind, ref, title, heading, at: new Date(atMs).toISOString(), place, snippet: cutSnippet(text, question) };
}
