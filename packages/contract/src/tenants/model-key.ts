import { z } from 'zod';

/** The name of a provider of the operator's providers file. */
export const ModelProviderName = z
  .string()
  .regex(/^[a-z0-9-]{1,64}$/u, 'must be the name of a model provider')
  .meta({ id: 'ModelProviderName' });

/** PUT /api/model-keys/{provider}. Write-only. */
export const ModelKeyBody = z
  .strictObject({
    apiKey: z
      .string()
      .min(8)
      .max(4096)
      .regex(/^[!#-[\]-~]+$/u, 'must be visible ASCII without quotes, backslashes and spaces'),
  })
  .meta({ id: 'ModelKeyBody' });
export type ModelKeyBody = z.infer<typeof ModelKeyBody>;

/** What is shown of a tenant's own key for a model provider. */
export const ModelKeyView = z
  .object({
    provider: ModelProviderName,
    /** Its last four characters; empty for a short key, and for one that cannot be read. */
    hint: z.string().max(4),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    /** Why it cannot be used; the operator's key is not used in its place. */
    problem: z.string().nullable(),
  })
  .meta({ id: 'ModelKey' });
export type ModelKeyView = z.infer<typeof ModelKeyView>;
