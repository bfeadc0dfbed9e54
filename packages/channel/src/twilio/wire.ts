import { z } from 'zod';
import { maybe } from '../inbound/json.ts';

/** What is read of Twilio's forms. Fields that do not apply are missing, or empty. */

const text = maybe(z.string().min(1));
const degrees = maybe(
  z
    .string()
    .regex(/^-?\d{1,3}(?:\.\d{1,20})?$/u)
    .transform(Number),
);

export const Callback = z.object({
  MessageSid: text,
  AccountSid: z.string(),
  MessagingServiceSid: text,
  From: text,
  To: text,
  /** Only for receipts of our messages. */
  MessageStatus: text,
  ErrorCode: text,
  Body: text,
  NumMedia: maybe(
    z
      .string()
      .regex(/^\d{1,2}$/u)
      .transform(Number),
  ),
  /** Set where the messaging service handles the words by which contacts leave and come back. */
  OptOutType: text,
  ProfileName: text,
  OriginalRepliedMessageSid: text,
  ButtonText: text,
  ButtonPayload: text,
  ListId: text,
  ListTitle: text,
  Latitude: degrees,
  Longitude: degrees,
  Label: text,
  Address: text,
  ReferralSourceType: text,
  ReferralSourceId: text,
});
export type Callback = z.infer<typeof Callback>;

/** Twilio returns nothing of ours but the address, so the address names the message. It is signed with the rest. */
/** Kept as it is: providers still call the addresses of messages that were sent before. */
const REFERENCE_PARAMETER = 'mark';

export function statusCallback(webhookUrl: string, reference: string | undefined): string {
  return reference === undefined ? webhookUrl : `${webhookUrl}?${new URLSearchParams({ [REFERENCE_PARAMETER]: reference }).toString()}`;
}

export function readReference(url: string): string | null {
  return URL.parse(url)?.searchParams.get(REFERENCE_PARAMETER) ?? null;
}
