import { z } from 'zod';
import { id, list, maybe, seconds } from '../inbound/json.ts';

/** What is read of WhatsApp's webhooks; everything else in them is left alone. */

export const Envelope = z.object({ object: maybe(z.string()), entry: list });

export const Entry = z.object({ changes: list });

export const Change = z.object({ field: maybe(z.string()), value: z.unknown().optional() });

export const Value = z.object({
  metadata: maybe(z.object({ phone_number_id: maybe(id), display_phone_number: maybe(id) })),
  contacts: list,
  messages: list,
  statuses: list,
  errors: list,
  user_id_update: list,
});

export const Contact = z.object({
  wa_id: maybe(id),
  user_id: maybe(id),
  parent_user_id: maybe(id),
  profile: maybe(z.object({ name: maybe(z.string()) })),
});
export type Contact = z.infer<typeof Contact>;

export const File = z.object({
  id,
  mime_type: maybe(z.string()),
  sha256: maybe(z.string()),
  caption: maybe(z.string()),
  filename: maybe(z.string()),
  voice: maybe(z.boolean()),
  url: maybe(z.string()),
});
export type File = z.infer<typeof File>;

const Choice = z.object({ id: maybe(id), title: maybe(z.string()) });

/** What every message has; its content lies under the name of its type and is read as that. */
export const Message = z.looseObject({
  id: maybe(id),
  type: maybe(z.string()),
  from: maybe(id),
  from_user_id: maybe(id),
  group_id: maybe(id),
  timestamp: maybe(seconds),
  context: maybe(z.object({ id: maybe(id) })),
  referral: maybe(z.object({ source_type: maybe(z.string()), source_id: maybe(id) })),
});
export type Message = z.infer<typeof Message>;

export const Text = z.object({ body: maybe(z.string()) });

export const Location = z.object({ latitude: z.number(), longitude: z.number(), name: maybe(z.string()), address: maybe(z.string()) });
export type Location = z.infer<typeof Location>;

export const Interactive = z.object({
  button_reply: maybe(Choice),
  list_reply: maybe(Choice),
  nfm_reply: maybe(z.object({ name: maybe(z.string()), response_json: maybe(z.string()) })),
});
export type Interactive = z.infer<typeof Interactive>;

export const Button = z.object({ payload: maybe(z.string()), text: maybe(z.string()) });

export const Order = z.object({ catalog_id: maybe(id), text: maybe(z.string()), product_items: list });
export type Order = z.infer<typeof Order>;

export const System = z.object({ type: maybe(z.string()), wa_id: maybe(id), user_id: maybe(id) });

export const Revoke = z.object({ original_message_id: maybe(id) });

export const Card = z.object({ name: z.object({ formatted_name: z.string() }) });

export const Product = z.object({ product_retailer_id: id, quantity: maybe(z.coerce.number()) });

export const Status = z.object({
  id,
  status: z.enum(['sent', 'delivered', 'read', 'played', 'failed']),
  timestamp: maybe(seconds),
  recipient_id: maybe(id),
  recipient_user_id: maybe(id),
  biz_opaque_callback_data: maybe(z.string()),
  errors: list,
});

export const ProviderError = z.object({ code: id });

export const UserIdUpdate = z.object({ user_id: z.object({ previous: id, current: id }) });
