import { createHash } from 'node:crypto';

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/**
 * The id of a tool call in nine letters and digits, as Mistral wants them: the id itself when it is such a one, else
 * made of its hash. The same id gives the same text, so that a call and its result stay a pair.
 */
export function toNineCharacters(id: string): string {
  if (/^[A-Za-z0-9]{9}$/u.test(id)) return id;
  const bytes = createHash('sha256').update(id).digest().subarray(0, 9);
  return Array.from(bytes, (byte) => letters.charAt(byte % letters.length)).join('');
}
