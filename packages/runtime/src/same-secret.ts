import { hash, timingSafeEqual } from 'node:crypto';

/**
 * Whether both are the same, in time that does not reveal how much of them is. A missing text equals nothing, and
 * neither does an empty secret; refusing takes as long.
 */
export function isSameSecret(given: string | undefined, secret: string | undefined): boolean {
  const isEqual = timingSafeEqual(hash('sha256', given ?? '', 'buffer'), hash('sha256', secret ?? '', 'buffer'));
  return isEqual && given !== undefined && secret !== undefined && secret !== '';
}
