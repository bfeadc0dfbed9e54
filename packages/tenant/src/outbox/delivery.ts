import type { DeliveryProblem, DeliveryState, DeliveryStep, DeliveryView, OutboundMessage, ReceiptState } from '@concierge/contract';
import { receiptStates } from '@concierge/contract';

/**
 * One part: waiting → sent, failed or unknown. Sent stays sent; the receipt moves on from there. Unknown becomes sent
 * when a frozen sender resumes and reports it. A redrive makes all but the sent ones waiting again.
 */
export interface DeliveryPart {
  readonly text: string;
  readonly plain: string;
  state: 'waiting' | 'sent' | 'failed' | 'unknown';
  /** Tries so far; the next one has the number after it. */
  tries: number;
  /** Tries that count towards giving up. */
  attempts: number;
  form: 'formatted' | 'plain';
  /** For people: by the clock of the process that tried. */
  retryAtMs: number | undefined;
  /** From the end of the last try to the next, by that same clock. */
  retryAfterMs: number | undefined;
  /** The beginning of the try that was taken. */
  sentAtMs: number | undefined;
  providerMessageId: string | undefined;
  receipt: ReceiptState | undefined;
  problem: DeliveryProblem | undefined;
  /** The last try before the last redrive: a late result of those counts only when it is `sent`. */
  earlierTries: number;
  /** Tries since then that the provider refused for their credentials: they say nothing about the part. */
  bindingTries: number;
}

type Result = Extract<DeliveryStep, { kind: 'result' }>;

/** A message with its journal, folded: what became of it, and what is to be done next. */
export class Delivery {
  readonly message: OutboundMessage;
  /** As it lies on disk: a delivery is never changed, another one is read. */
  readonly steps: readonly DeliveryStep[];
  /** Tries that were begun and have no result, `<part>.<try>`. */
  readonly openTries: readonly { readonly part: number; readonly try: number }[];
  #parts: DeliveryPart[] | undefined;
  #to: string;
  #withoutReply = false;
  #expiresAtMs: number;
  #updatedAt: string;
  #end: { readonly state: 'failed' | 'expired' | 'withheld'; readonly problem: DeliveryProblem } | undefined;

  constructor(message: OutboundMessage, steps: readonly DeliveryStep[], claims: readonly { part: number; try: number }[] = []) {
    this.message = message;
    this.steps = steps;
    this.#to = message.to;
    this.#expiresAtMs = Date.parse(message.expiresAt);
    this.#updatedAt = message.acceptedAt;
    for (const step of steps) this.#apply(step);
    for (const claim of claims) {
      const part = this.#parts?.[claim.part];
      if (part !== undefined) part.tries = Math.max(part.tries, claim.try);
    }
    const reported = new Set(steps.flatMap((step) => (step.kind === 'result' ? [`${String(step.part)}.${String(step.try)}`] : [])));
    this.openTries = claims.filter((claim) => !reported.has(`${String(claim.part)}.${String(claim.try)}`));
  }

  /** undefined before it was rendered. */
  get parts(): readonly Readonly<DeliveryPart>[] | undefined {
    return this.#parts;
  }

  /** Where it goes: a group may have moved since. */
  get to(): string {
    return this.#to;
  }

  get replyTo(): string | undefined {
    return this.#withoutReply ? undefined : this.message.replyTo;
  }

  /** Since when it is to be sent: its acceptance, or its last redrive. */
  get wantedAt(): string {
    return this.steps.findLast(({ kind }) => kind === 'redrive')?.at ?? this.message.acceptedAt;
  }

  /** How long it may wait, from `wantedAt` on. */
  get lifeMs(): number {
    return this.#expiresAtMs - Date.parse(this.wantedAt);
  }

  /** By the clock of the process that accepted it. */
  get expiresAtMs(): number {
    return this.#expiresAtMs;
  }

  get updatedAt(): string {
    return this.#updatedAt;
  }

  /** The part to be sent next. */
  get next(): { readonly index: number; readonly part: Readonly<DeliveryPart> } | undefined {
    const index = this.#parts?.findIndex(({ state }) => state === 'waiting') ?? -1;
    const part = this.#parts?.[index];
    return part === undefined || this.state !== 'waiting' ? undefined : { index, part };
  }

  get state(): DeliveryState {
    if (this.#end !== undefined) return this.#end.state;
    const parts = this.#parts;
    if (parts === undefined) return 'waiting';
    if (parts.some((part) => part.state === 'failed' || part.receipt === 'failed')) return 'failed';
    if (parts.some(({ state }) => state === 'waiting')) return 'waiting';
    if (parts.some(({ state }) => state === 'unknown')) return 'unknown';
    const least = Math.min(...parts.map(({ receipt }) => rankReceipt(receipt)));
    if (least >= rankReceipt('read')) return 'read';
    return least >= rankReceipt('delivered') ? 'delivered' : 'sent';
  }

  /** Why it is not sent (yet). */
  get problem(): DeliveryProblem | undefined {
    if (this.#end !== undefined) return this.#end.problem;
    return this.#parts?.findLast((part) => part.problem !== undefined && (part.state !== 'sent' || part.receipt === 'failed'))?.problem;
  }

  /** With the steps that follow. */
  with(steps: readonly DeliveryStep[]): Delivery {
    return new Delivery(this.message, [...this.steps, ...steps], this.openTries);
  }

  view(): DeliveryView {
    const { id, kind, channel, thread, sessionId, agent, turnId, acceptedAt, text } = this.message;
    return {
      id,
      kind,
      channel,
      to: this.#to,
      thread: thread ?? null,
      contact_id: sessionId,
      agent,
      turnId,
      state: this.state,
      problem: this.problem ?? null,
      acceptedAt,
      expiresAt: new Date(this.#expiresAtMs).toISOString(),
      updatedAt: this.#updatedAt,
      text,
    };
  }

  /** With its parts. */
  fullView(): DeliveryView {
    const parts = (this.#parts ?? []).map((part) => ({
      text: part.plain,
      state: shownState(part),
      tries: part.tries,
      retryAt: part.state === 'waiting' && part.retryAtMs !== undefined ? new Date(part.retryAtMs).toISOString() : null,
      providerMessageId: part.providerMessageId ?? null,
      problem: part.problem ?? null,
    }));
    return { ...this.view(), parts };
  }

  #apply(step: DeliveryStep): void {
    if (step.at > this.#updatedAt) this.#updatedAt = step.at;
    switch (step.kind) {
      case 'parts': {
        // Two writers of which one was frozen may both have rendered it: the first one's parts are the ones that were
        // tried.
        this.#parts ??= step.parts.map((part) => newPart(part));
        break;
      }
      case 'result': {
        this.#applyResult(step);
        break;
      }
      case 'end': {
        this.#end = step;
        break;
      }
      case 'redrive': {
        this.#end = undefined;
        this.#expiresAtMs = Date.parse(step.expiresAt);
        for (const part of this.#parts ?? []) reopen(part);
        break;
      }
      case 'receipt': {
        this.#applyReceipt(step);
        break;
      }
    }
  }

  #applyReceipt({ part: index, state, problem }: Extract<DeliveryStep, { kind: 'receipt' }>): void {
    const part = this.#parts?.[index];
    if (part === undefined || rankReceipt(state) <= rankReceipt(part.receipt)) return;
    part.receipt = state;
    part.problem = state === 'failed' ? problem : undefined;
  }

  #applyResult(result: Result): void {
    const part = this.#parts?.[result.part];
    if (part === undefined) return;
    part.tries = Math.max(part.tries, result.try);
    // Reported late, after others had given it up, it has arrived all the same.
    if (result.outcome === 'sent') markSent(part, result);
    else if (part.state === 'waiting' && result.try > part.earlierTries) {
      if (result.outcome === 'binding_failed') part.bindingTries += 1;
      this.#applyFailure(part, result);
    }
  }

  #applyFailure(part: DeliveryPart, result: Result): void {
    part.problem = result.problem;
    part.retryAtMs = undefined;
    part.retryAfterMs = undefined;
    if (result.outcome === 'retry') markRetry(part, result);
    if (result.outcome === 'unknown') part.state = 'unknown';
    if (result.outcome === 'refused' || result.outcome === 'recipient_failed') part.state = 'failed';
    if (result.outcome === 'resend_plain') part.form = 'plain';
    if (result.outcome === 'resend_without_reply') this.#withoutReply = true;
    if (result.outcome === 'resend_to') this.#to = result.to ?? this.#to;
    if (result.outcome === 'window_closed')
      this.#end = {
        state: 'withheld',
        problem: { code: 'window_closed', message: result.problem?.message ?? 'The reply window is closed.' },
      };
    // binding_failed: it waits until the channel is connected anew.
  }
}

function markSent(part: DeliveryPart, { at, begunAt = at, providerMessageId }: Result): void {
  if (part.state === 'sent') return;
  Object.assign(part, {
    state: 'sent',
    sentAtMs: Date.parse(begunAt),
    retryAtMs: undefined,
    retryAfterMs: undefined,
    problem: undefined,
    providerMessageId,
  });
}

function markRetry(part: DeliveryPart, { at, retryAt }: Result): void {
  part.attempts += 1;
  if (retryAt == null) part.state = 'failed';
  else Object.assign(part, { retryAtMs: Date.parse(retryAt), retryAfterMs: Math.max(0, Date.parse(retryAt) - Date.parse(at)) });
}

function newPart({ text, plain }: { readonly text: string; readonly plain: string }): DeliveryPart {
  return {
    text,
    plain,
    state: 'waiting',
    tries: 0,
    attempts: 0,
    form: 'formatted',
    retryAtMs: undefined,
    retryAfterMs: undefined,
    sentAtMs: undefined,
    providerMessageId: undefined,
    receipt: undefined,
    problem: undefined,
    earlierTries: 0,
    bindingTries: 0,
  };
}

function reopen(part: DeliveryPart): void {
  if (part.state === 'sent' && part.receipt !== 'failed') return;
  Object.assign(part, { ...newPart(part), tries: part.tries, earlierTries: part.tries });
}

function rankReceipt(state: ReceiptState | undefined): number {
  return state === undefined ? -1 : receiptStates.indexOf(state);
}

function shownState({ state, receipt }: DeliveryPart): NonNullable<DeliveryView['parts']>[number]['state'] {
  if (state !== 'sent' || receipt === undefined) return state;
  return receipt === 'played' ? 'read' : receipt;
}
