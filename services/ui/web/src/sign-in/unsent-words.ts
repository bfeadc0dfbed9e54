/**
 * What was being written when the service refused the key: shown beside the sign-in, so that it can be copied. In this
 * page's memory alone, and gone with the next sign-in.
 */
class UnsentWords {
  #texts: readonly string[] = [];
  readonly #listeners = new Set<() => void>();

  readonly snapshot = (): readonly string[] => this.#texts;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  keep(texts: readonly string[]): void {
    const added = texts.filter((text) => text.trim() !== '' && !this.#texts.includes(text));
    if (added.length > 0) this.#set([...this.#texts, ...added]);
  }

  forget(): void {
    if (this.#texts.length > 0) this.#set([]);
  }

  #set(texts: readonly string[]): void {
    this.#texts = texts;
    for (const listener of this.#listeners) listener();
  }
}

/** Those of this tab. */
export const unsentWords = new UnsentWords();
