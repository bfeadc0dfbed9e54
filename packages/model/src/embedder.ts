/** The port for vectors of texts. */
export interface Embedder {
  /** `provider/model` of what makes the vectors: those of two models cannot be compared. */
  readonly model: string;
  /** One vector for each text, in order, all of one length. Throws `ModelError`, or the signal's own reason when it aborts. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>;
}
