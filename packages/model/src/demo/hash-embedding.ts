import { createHash } from 'node:crypto';

export const DEMO_DIMENSIONS = 256;

/**
 * A unit vector from the words of a text: equal texts are equal, texts that share words are near. It knows no meaning;
 * it is for trying what is built on embeddings.
 */
export function hashEmbedding(text: string, dimensions: number = DEMO_DIMENSIONS): Float32Array {
  const vector = new Float32Array(dimensions);
  for (const word of text.toLowerCase().match(/[\p{L}\d]+/gu) ?? ['']) {
    const digest = createHash('sha256').update(word).digest();
    const place = digest.readUInt32LE(0) % dimensions;
    vector[place] = (vector[place] ?? 0) + (digest.readUInt8(4) % 2 === 0 ? 1 : -1);
  }
  const length = Math.hypot(...vector);
  return length === 0 ? vector.fill(1 / Math.sqrt(dimensions)) : vector.map((value) => value / length);
}
