import { AppError, builtInAgent, type BusyPolicy, type TurnInput, type InvalidField, type UploadRef } from '@concierge/contract';
import { Slots, hashParts } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { hasBudget, type Budgets, type StreamBytes, type TurnReceipt, type Turns } from '@concierge/turn';
import type { GatewayMetrics } from '../metrics.ts';
import type { Siblings } from '../processes/siblings.ts';
import type { MessageSource } from '../http/request-context.ts';

/** Turns being accepted at once; several times what a disk stores in a second would only wait. */
const ACCEPTED_AT_ONCE = 2000;

export interface MessageAcceptanceOptions {
  readonly turns: Pick<Turns, 'accept' | 'findAccepted'>;
  readonly streamQuota: Pick<StreamBytes, 'refuseWhenFull'>;
  readonly budgets: Pick<Budgets, 'refuseWhenSpent'>;
  readonly metrics: Pick<GatewayMetrics, 'accepts'>;
  readonly siblings?: Pick<Siblings, 'share'>;
  readonly atOnce?: number;
}

/** The fields of a turn that an endpoint gives unchanged. */
type TurnFields = Pick<TurnInput, 'agent' | 'authority' | 'channel' | 'sender' | 'contactId' | 'text' | 'preface'>;

/** A message of an agent user, through any endpoint. */
export interface UserMessage extends Readonly<TurnFields> {
  readonly busy: BusyPolicy;
  readonly attachments: readonly GivenAttachment[];
  /** What makes two requests the same where it is not `text`, `contactId` and the ids of the attachments themselves. */
  readonly identity?: Pick<AskedFor, 'message' | 'contactId' | 'attachmentKeys'>;
}

/** Accepts the messages of every chat endpoint as turns. */
export class MessageAcceptance {
  readonly #options: MessageAcceptanceOptions;
  readonly #slots: Slots;

  constructor(options: MessageAcceptanceOptions) {
    this.#options = options;
    this.#slots = new Slots(options.atOnce ?? options.siblings?.share(ACCEPTED_AT_ONCE) ?? ACCEPTED_AT_ONCE);
  }

  /**
   * A message beyond the capacity is refused before anything is accepted: a service that takes more than it can write
   * down only gets slower for all.
   * @throws AppError as `Turns.accept`, `overloaded`, `rate_limited`, `budget_exceeded`, `invalid_request`
   * (attachments)
   */
  async accept(
    { scope, keyId, dedupeId, traceparent }: MessageSource,
    { attachments: given, identity, ...asked }: UserMessage,
  ): Promise<TurnReceipt> {
    const { turns, streamQuota, budgets, metrics } = this.#options;
    const receivedAtMs = Date.now();
    const settings = await scope.settings();
    try {
      streamQuota.refuseWhenFull(scope, settings);
      if (hasBudget(settings)) await budgets.refuseWhenSpent(scope, { isOwners: asked.authority === 'admin' });
    } catch (error) {
      // A request that is repeated gets the turn that it has already, which may be the one that took the rest.
      if (dedupeId === null || (await turns.findAccepted(scope, dedupeId)) === undefined) throw error;
    }
    using slot = this.#slots.tryTake();
    if (slot === undefined) throw new AppError('overloaded', undefined, { retryAfterSeconds: 1 });
    const stop = metrics.accepts.startTimer({ agent: builtInAgent(asked.agent)?.name ?? 'other' });
    const attachments = given.length === 0 ? [] : await resolveAttachments(scope, given);
    const { text: message, contactId } = asked;
    const hashed = { ...asked, ...(identity ?? { message, contactId, attachmentKeys: attachments.map(({ id }) => id) }) };
    const facts = { dedupeId, requestHash: requestHash(hashed), keyId, receivedAtMs, ...(traceparent !== undefined && { traceparent }) };
    const receipt = await turns.accept(scope, { origin: 'api', ...asked, attachments, ...facts });
    stop();
    return receipt;
  }
}

/** What a chat request asks for: two with one Idempotency-Key must agree in all of it. */
export interface AskedFor {
  readonly agent: string;
  readonly message: string;
  readonly contactId: string | null;
  readonly sender: string | null;
  readonly channel: string;
  readonly attachmentKeys: readonly string[];
}

/**
 * SHA-256 (hex) over one canonical spelling, so that neither the order of the fields nor white space nor a channel's
 * synonym matters.
 */
export function requestHash({ agent, message, contactId, sender, channel, attachmentKeys }: AskedFor): string {
  return hashParts([agent, message, contactId, sender, channel, attachmentKeys], { separator: 'json' });
}

/** An attachment in a request body: the whole reference, or its id alone. */
export type GivenAttachment = UploadRef | { readonly id: string };

/**
 * The stored references behind those of a request. One that was given whole must be the stored one: its name and type
 * are not for the caller to choose.
 * @throws AppError `invalid_request` naming each that is no upload of this tenant
 */
async function resolveAttachments(scope: TenantScope, given: readonly GivenAttachment[]): Promise<UploadRef[]> {
  const found = await Promise.all(given.map(async (attachment) => await scope.uploads.find(attachment.id)));
  const errors: InvalidField[] = [];
  const resolved: UploadRef[] = [];
  for (const [index, attachment] of given.entries()) {
    const stored = found[index];
    if (stored === undefined) errors.push({ path: `attachments.${String(index)}`, message: 'is not an upload of this tenant' });
    else if (differs(attachment, stored))
      errors.push({ path: `attachments.${String(index)}`, message: 'is not what was uploaded under this id' });
    else resolved.push(stored);
  }
  if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
  return resolved;
}

function differs(given: GivenAttachment, stored: UploadRef): boolean {
  return 'name' in given && (given.name !== stored.name || given.type !== stored.type || given.size !== stored.size);
}
