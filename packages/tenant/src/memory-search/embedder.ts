/** Turns texts into vectors; `@concierge/model` has the real one. Without one, words alone are searched. */
export interface Embedder {
  /** Name and version of what makes the vectors: those of two models cannot be compared. */
  readonly model: string;
  /** One vector for each text, in order, all of one length. Rejects when the provider fails or the signal aborts. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>;
}
