import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { DISTANCE_DIGITS, selectEmbedded, type PassageQueries, type PassageRank } from './passage-queries.ts';
import type { PassageScope } from './passage.ts';

/**
 * The same direction with length 1: then the product of two is the cosine of the angle between them. A vector of zeros
 * stays one.
 */
export function unitVector(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** As sqlite-vec reads it: floats of 32 bits, little-endian. */
export function vectorBytes(vector: Float32Array): Uint8Array {
  const bytes = new Uint8Array(vector.length * 4);
  const view = new DataView(bytes.buffer);
  for (const [position, value] of vector.entries()) view.setFloat32(position * 4, value, true);
  return bytes;
}

function toVector(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: Math.floor(bytes.byteLength / 4) }, (_, position) => view.getFloat32(position * 4, true));
}

/** Undefined for vectors of different lengths, which no comparison fits. */
function computeCosine(one: Float32Array, other: Float32Array): number | undefined {
  if (one.length !== other.length) return undefined;
  let sum = 0;
  for (let position = 0; position < one.length; position += 1) sum += (one[position] ?? 0) * (other[position] ?? 0);
  return sum;
}

/** Bytes kept for all tenants of this process. */
const KEPT_BYTES = 64 * 1024 * 1024;
const FETCHED_AT_ONCE = 500;
const COMPARED_AT_ONCE = 2000;

const kept = new LRUCache<string, Float32Array>({ maxSize: KEPT_BYTES, sizeCalculation: (vector) => Math.max(1, vector.byteLength) });

export interface NearestQuery {
  readonly model: string;
  /** A vector of length 1. */
  readonly vector: Float32Array;
  readonly limit: number;
}

/**
 * Compares with every vector there is, one by one: for databases that cannot do it themselves. Vectors are kept in
 * memory by what they are of.
 */
export class VectorScan {
  readonly #tenantId: string;

  constructor(tenantId: string) {
    this.#tenantId = tenantId;
  }

  /** The same as `selectNearest` of a database that compares vectors. */
  async nearest(
    queries: PassageQueries,
    scope: PassageScope,
    { model, vector, limit }: NearestQuery,
  ): Promise<(PassageRank & { readonly similarity: number })[]> {
    const embedded = await selectEmbedded(queries, scope, model);
    const vectors = await this.#readVectors(queries, model, [...new Set(embedded.map(({ hash }) => hash))]);
    const compared: (PassageRank & { readonly similarity: number })[] = [];
    for (const [position, { hash, ...rank }] of embedded.entries()) {
      const other = vectors.get(hash);
      const similarity = other === undefined ? undefined : computeCosine(vector, other);
      if (similarity !== undefined) compared.push({ ...rank, similarity: Number(similarity.toFixed(DISTANCE_DIGITS)) });
      if (position % COMPARED_AT_ONCE === COMPARED_AT_ONCE - 1) await nextTurn();
    }
    // A stable sort: equals stay in the order in which they came, later ones first.
    return compared.toSorted((one, other) => other.similarity - one.similarity).slice(0, limit);
  }

  async #readVectors({ db, tenantId }: PassageQueries, model: string, hashes: readonly string[]): Promise<Map<string, Float32Array>> {
    const toCacheKey = (hash: string): string => `${this.#tenantId} ${model} ${hash}`;
    const found = new Map<string, Float32Array>();
    const missing = hashes.filter((hash) => {
      const known = kept.get(toCacheKey(hash));
      if (known !== undefined) found.set(hash, known);
      return known === undefined;
    });
    for (let from = 0; from < missing.length; from += FETCHED_AT_ONCE) {
      const rows = await db
        .selectFrom('passage_vectors')
        .select(['hash', 'vector'])
        .where('account_id', '=', tenantId)
        .where('model', '=', model)
        .where('hash', 'in', missing.slice(from, from + FETCHED_AT_ONCE))
        .execute();
      for (const row of rows) {
        const vector = toVector(row.vector);
        kept.set(toCacheKey(row.hash), vector);
        found.set(row.hash, vector);
      }
      await nextTurn();
    }
    return found;
  }
}
