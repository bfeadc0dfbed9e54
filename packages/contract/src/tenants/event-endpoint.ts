import { z } from 'zod';
import { SubscribedType } from './event.ts';
import { HttpUrl } from '../values/values.ts';
import { limits } from '../limits.ts';

/** Twelve digits, which are part of the id of each of its events. */
export const EventEndpointId = z.string().regex(/^ep_[0-9a-f]{12}$/u, 'is not the id of an event endpoint');

const definition = {
  url: HttpUrl.meta({ description: 'Takes POST requests; https unless there is a reason. At a public address.' }),
  description: z.string().trim().max(limits.eventEndpointDescriptionMaxCharacters),
  types: z
    .array(SubscribedType)
    .max(100)
    .transform((types) => [...new Set(types)])
    .nullable()
    .meta({
      description: 'The types that it gets; null: all types, future ones included. Empty: only what schedules send to it.',
    }),
  includeText: z.boolean().meta({ description: 'Put the reply into turn.completed.' }),
  enabled: z.boolean(),
};

/** POST /api/event-endpoints */
export const NewEventEndpoint = z
  .strictObject({
    ...definition,
    description: definition.description.default(''),
    types: definition.types.default(null),
    includeText: z.boolean().default(false),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'NewEventEndpoint' });
export type NewEventEndpoint = z.infer<typeof NewEventEndpoint>;

/**
 * PATCH: each field replaces the one that was there. `enabled: true` also takes back that it was disabled for its
 * failures.
 */
export const EventEndpointPatch = z.strictObject(definition).partial().meta({ id: 'EventEndpointPatch' });
export type EventEndpointPatch = z.infer<typeof EventEndpointPatch>;

/** tenants/<id>/events/endpoints/<id>.json: changed by people alone. */
export const EventEndpoint = z.strictObject({
  version: z.literal(1),
  id: EventEndpointId,
  ...definition,
  /** Sealed with tenant and endpoint as associated data (see `TenantSecrets`). */
  secret: z.string(),
  /** The one before signs along until then. */
  previous: z.strictObject({ secret: z.string(), until: z.iso.datetime() }).nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type EventEndpoint = z.infer<typeof EventEndpoint>;

/**
 * tenants/<id>/events/endpoints/<id>.health.json: written when it begins to fail or is disabled for it; there is none
 * while all is well.
 */
export const EventEndpointHealth = z.strictObject({
  version: z.literal(1),
  failingSince: z.iso.datetime(),
  /** Why nothing is sent to it any more; null while it is still tried. */
  disabledReason: z.string().nullable(),
});
export type EventEndpointHealth = z.infer<typeof EventEndpointHealth>;

const view = {
  id: EventEndpointId,
  ...definition,
  types: z.array(SubscribedType).nullable(),
  /** `disabled`: by its owner or for its failures; `broken`: its file or its secret cannot be read. */
  state: z.enum(['enabled', 'disabled', 'broken']),
  /** Why it is not enabled. */
  reason: z.string().nullable(),
  /** No try has succeeded since then; null while all is well. */
  failingSince: z.iso.datetime().nullable(),
  createdAt: z.iso.datetime().nullable(),
  updatedAt: z.iso.datetime().nullable(),
};

/** What is shown of an endpoint; never its secret. */
export const EventEndpointView = z.object(view).meta({ id: 'EventEndpoint' });
export type EventEndpointView = z.infer<typeof EventEndpointView>;

/** Answer to its creation and to a new secret: the only times it is shown. */
export const EventEndpointWithSecret = z
  .object({ ...view, secret: z.string().meta({ description: 'For the signatures (Standard Webhooks): `whsec_` and base64.' }) })
  .meta({ id: 'EventEndpointWithSecret' });
export type EventEndpointWithSecret = z.infer<typeof EventEndpointWithSecret>;

/** POST /api/event-endpoints/{id}/test: sent just now. */
export const EventEndpointTest = z
  .object({ ok: z.boolean(), status: z.int().nullable(), ms: z.int().nonnegative(), problem: z.string().nullable() })
  .meta({ id: 'EventEndpointTest' });
export type EventEndpointTest = z.infer<typeof EventEndpointTest>;
