import { allowedPlace } from './outbound-url.ts';
import { z } from 'zod';

/**
 * The variable OUTBOUND_ALLOW: `host:port`s, parted by commas or spaces. The deployment's own: nothing of a tenant can
 * add to it.
 */
export const outboundAllow = z
  .string()
  .default('')
  .transform((text) => text.split(/[\s,]+/u).filter((entry) => entry !== ''))
  .pipe(z.array(z.string().refine(isPlace, { error: 'must be a list of host:port' })));

function isPlace(entry: string): boolean {
  try {
    return allowedPlace(entry) !== '';
  } catch {
    return false;
  }
}
