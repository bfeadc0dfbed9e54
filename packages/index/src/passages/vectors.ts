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
  for (const [place, value] of vector.entries()) view.setFloat32(place * 4, value, true);
  return bytes;
}

export function toVector(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: Math.floor(bytes.byteLength / 4) }, (_, place) => view.getFloat32(place * 4, true));
}

/** Undefined for vectors of different lengths, which no comparison fits. */
export function computeCosine(one: Float32Array, other: Float32Array): number | undefined {
  if (one.length !== other.length) return undefined;
  let sum = 0;
  for (let place = 0; place < one.length; place += 1) sum += (one[place] ?? 0) * (other[place] ?? 0);
  return sum;
}
