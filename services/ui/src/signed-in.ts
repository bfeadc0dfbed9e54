import { z } from 'zod';

/** What the key of a sign-in may do, as far as the console found out: a key for cs alone cannot list conversations. */
const Reach = z.enum(['tenant', 'cs']);
export type Reach = z.infer<typeof Reach>;

/**
 * Names the sign-in by cookie that a request was begun with (`id` of `SignedIn`). A request that is repeated may come
 * with the cookie of the next one who has signed in: it must not act for that one.
 */
export const SIGN_IN_HEADER = 'x-concierge-sign-in';

/** Body of `POST /sign-in`. */
export const SignInBody = z.strictObject({ key: z.string().min(1).max(512) });

/**
 * Answer of `GET /signed-in` and `POST /sign-in`; null: no owner is signed in by cookie. `id` is the same for
 * every sign-in with one key, and of no other; a console of an earlier version gives none.
 */
export const SignedIn = z.object({ reach: Reach.nullable(), id: z.string().nullable().default(null) });
export type SignedIn = z.infer<typeof SignedIn>;

/** What the cookie holds, sealed. */
export const SealedSignIn = z.object({ key: z.string(), reach: Reach, untilMs: z.number() });
export type SealedSignIn = z.infer<typeof SealedSignIn>;
