import type { Embedder } from '@concierge/contract';
import { mapMeanings, standInEmbedding } from '@concierge/testing';

/** A day of October 2026. */
export const day = (number: number): string => new Date(Date.UTC(2026, 9, number)).toISOString();

/** Vectors of the stand-in, and a count of what was asked for. */
export class CountedEmbedder implements Embedder {
  readonly model: string;
  readonly texts: string[] = [];
  isDown = false;

  constructor(model = 'test/embedding') {
    this.model = model;
  }

  embed(texts: readonly string[]): Promise<readonly Float32Array[]> {
    if (this.isDown) return Promise.reject(new Error('no answer'));
    this.texts.push(...texts);
    const meanings = mapMeanings([['refund', 'erstattung', 'money']]);
    return Promise.resolve(texts.map((text) => Float32Array.from(standInEmbedding(text, meanings))));
  }

  /** What was embedded since the last call, the question left out. */
  take(question: string): string[] {
    return this.texts.splice(0).filter((text) => text !== question);
  }
}
