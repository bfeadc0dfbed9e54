import { z } from 'zod';
import { limits } from '../limits.ts';
import { openList } from '../values/stored.ts';

/**
 * `admin`: everything of the tenant. `cs`: POST /api/cs, uploads for it, its own turns. `read`: GET only (contract §2).
 */
export const keyScopes = ['admin', 'cs', 'read'] as const;
export const KeyScope = openList(z.enum(keyScopes));
export type KeyScope = z.infer<typeof KeyScope>;

export const keyPrefix = 'ck_live_';

export const KeyView = z
  .object({
    id: z.string(),
    label: z.string(),
    scopes: z.array(KeyScope).min(1),
    createdAt: z.iso.datetime(),
    lastUsedAt: z.iso.datetime().nullable(),
    expiresAt: z.iso.datetime().nullable(),
    revokedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Key' });
export type KeyView = z.infer<typeof KeyView>;

export const CreateKeyBody = z
  .strictObject({
    label: z.string().max(limits.keyLabelMaxCharacters).default(''),
    scopes: z.array(KeyScope).min(1).max(keyScopes.length),
    expiresAt: z.iso.datetime().max(limits.timeMaxCharacters).optional(),
  })
  .meta({ id: 'CreateKeyBody' });
export const CreatedKey = z.object({ id: z.string(), key: z.string(), scopes: z.array(KeyScope) }).meta({ id: 'CreatedKey' });
