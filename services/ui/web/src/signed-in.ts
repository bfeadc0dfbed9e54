import { z } from 'zod';
import { forgetAll, keep, readKept } from './parts/browser-storage.ts';

/** What the key may do, as far as the page found out: a key for cs alone cannot list conversations. */
const SignedIn = z.object({ key: z.string(), reach: z.enum(['tenant', 'cs']) });
export type SignedIn = z.infer<typeof SignedIn>;

const name = 'concierge.signed-in';

/** The key of this tab. It is kept for the tab's life only, and nowhere else. */
export function loadSignedIn(): SignedIn | null {
  try {
    return SignedIn.parse(JSON.parse(readKept('sessionStorage', name) ?? 'null'));
  } catch {
    return null;
  }
}

export function saveSignedIn(signedIn: SignedIn): void {
  keep('sessionStorage', name, JSON.stringify(signedIn));
}

/** Signing out leaves nothing of the tenant in the tab. */
export function forgetSignedIn(): void {
  forgetAll('sessionStorage');
}
