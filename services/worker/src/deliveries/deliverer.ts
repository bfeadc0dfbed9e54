import {
  openSender,
  renderParts,
  replyWindow,
  retryDelayMs,
  type Part,
  type ProviderSettings,
  type SendOutcome,
  type SendingRules,
} from '@concierge/channel';
import { isSimulated, toAppName, webhookPaths, type MessagingChannel, type DeliveryProblem, type DeliveryStep } from '@concierge/contract';
import { failpoint, type Log } from '@concierge/runtime';
import { readLaneId, lastInboundMs, type Delivery, type DeliveryPart, type TenantScope } from '@concierge/tenant';
import type { DeliveryPace, DeliveryReceipts, DeliveryReported, LaneStep } from '@concierge/turn';
import { findConnection, stopSending, type Connection } from '../channels/channel-senders.ts';
import type { DeliveryMetrics } from '../metrics.ts';

/** The time for one answer; a later one counts as lost. A part that is being sent ends within the grace of a stop. */
const SEND_TIMEOUT_MS = 20_000;
/** From the moment on from which a try's age counts, which is before its claim is on disk. */
const SENDING_MAX_MS = SEND_TIMEOUT_MS + 5000;
/**
 * A binding that waits for its owner, or a suspended tenant, is looked at again after this time, since their return is
 * not announced everywhere.
 */
const LOOK_AGAIN_MS = 30_000;
/** A whole binding is throttled no longer than this at once, whatever the channel answers to one message. */
const HOLD_MAX_MS = 60_000;
/** The limit of tries for one part, each for another reason: it stops endless requests of a channel to send again. */
const TRIES_MAX = 30;

export interface DelivererOptions {
  readonly providers: ProviderSettings;
  readonly pace: Pick<DeliveryPace, 'pace' | 'hold' | 'ages' | 'mayTryBinding' | 'noteBindingRefused'>;
  readonly receipts: Pick<DeliveryReceipts, 'catchUp'>;
  /** Called for each message whose delivery has ended, before it leaves its lane. */
  readonly onReported: DeliveryReported;
  readonly metrics: DeliveryMetrics;
  readonly log: Log;
  readonly now?: () => number;
  /** From 0 to 1. */
  readonly random?: () => number;
}

/** A part that may be sent now, if its state does not change before. */
interface Ready extends Connection {
  readonly delivery: Delivery;
  readonly index: number;
  readonly part: Readonly<DeliveryPart>;
  readonly tried: Try;
}

interface Try {
  readonly part: number;
  readonly try: number;
}

/** In milliseconds of service time, from the first look that saw each. */
interface Ages {
  readonly age: number;
  readonly retryAge: number;
  /** Means nothing when no try was asked for. */
  readonly sendingAge: number;
}

type Readiness = { readonly kind: 'ready'; readonly ready: Ready } | LaneStep;

/**
 * Delivers what is next in a conversation. For each attempt: check whether it may be sent at all → check its time →
 * claim on disk → send the request → write the result to disk. A request leaves once, whichever process dies; a claim
 * whose request has not left is tried anew.
 */
export class Deliverer {
  readonly #options: DelivererOptions;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  async deliverNext(scope: TenantScope, lane: string, signal: AbortSignal): Promise<LaneStep> {
    const head = await scope.outbox.head(lane);
    if (head === undefined) return { kind: 'empty' };
    const sendingMs = await this.#mayBeSendingFor(scope, head);
    if (sendingMs > 0) return this.#parked(sendingMs);
    const delivery = await this.#closeOpenTries(scope, head);
    if (delivery.state !== 'waiting') return this.#end(scope, delivery);
    const readiness = await this.#look(scope, delivery);
    return readiness.kind === 'ready' ? this.#try(readiness.ready, signal) : readiness;
  }

  /**
   * How long a request of an earlier holder may still be under way: that holder may be alive, and only have lost its
   * claim with Redis. What follows in the conversation must not overtake the request.
   */
  async #mayBeSendingFor(scope: TenantScope, delivery: Delivery): Promise<number> {
    for (const open of delivery.openTries) {
      if ((await scope.outbox.takeOver(delivery, open)) === 'nothing') continue;
      const { sendingAge } = await this.#ages(scope, delivery, open);
      if (sendingAge < SENDING_MAX_MS) return SENDING_MAX_MS - sendingAge;
    }
    return 0;
  }

  /**
   * Ends claims whose holder has lost the conversation or has died. A request that may have left is not sent again: its
   * outcome is not known.
   */
  async #closeOpenTries(scope: TenantScope, delivery: Delivery): Promise<Delivery> {
    if (delivery.openTries.length === 0) return delivery;
    const steps: DeliveryStep[] = [];
    for (const open of delivery.openTries) {
      const result = { kind: 'result', at: this.#now(), ...open } as const;
      const left = await scope.outbox.takeOver(delivery, open);
      if (left === 'nothing') steps.push({ ...result, outcome: 'retry', problem: notSent, retryAt: this.#now() });
      else steps.push({ ...result, outcome: 'unknown', problem: perhapsSent });
    }
    if (steps.some((step) => step.kind === 'result' && step.outcome === 'unknown'))
      await this.#noteProblem(scope, delivery, { kind: 'unknown', ...perhapsSent });
    return (await scope.outbox.record(delivery.message.id, steps)) ?? delivery.with(steps);
  }

  /**
   * Finds what keeps the message from being sent, if anything does. The cheap checks come first; whether a staff member
   * has the conversation comes last.
   */
  async #look(scope: TenantScope, delivery: Delivery): Promise<Readiness> {
    const { leftMs, retryInMs } = await this.#times(scope, delivery);
    if (leftMs <= 0 || retryInMs >= leftMs) return this.#expire(scope, delivery);
    if (retryInMs > 0) return this.#parked(retryInMs);
    const connection = await findConnection(scope, delivery);
    if (connection === undefined) return this.#parked(Math.min(LOOK_AGAIN_MS, leftMs));
    return this.#lookAtContent(connection, delivery);
  }

  /**
   * How long the message may still wait, and how long its next part has to. Both are counted in service time from the
   * first look that saw them: the times in the files are of another machine's clock. That clock counts only where a
   * message is twice as old as it may be: everything was down meanwhile.
   */
  async #times(scope: TenantScope, delivery: Delivery): Promise<{ readonly leftMs: number; readonly retryInMs: number }> {
    const { lifeMs, expiresAtMs, next } = delivery;
    const { age, retryAge } = await this.#ages(scope, delivery);
    const leftMs = this.#nowMs() - expiresAtMs >= lifeMs ? 0 : lifeMs - age;
    return { leftMs, retryInMs: Math.max(0, (next?.part.retryAfterMs ?? 0) - retryAge) };
  }

  /**
   * The ages of the message, of its wait for a retry and, where one is given, of the try that is leaving or has left.
   */
  async #ages(scope: TenantScope, delivery: Delivery, sending?: Try): Promise<Ages> {
    const { message, wantedAt, next } = delivery;
    const lane = toOutboxLane(scope, delivery);
    const others = (await scope.outbox.idsIn(lane.lane)).filter((id) => id !== message.id);
    const own = `${message.id} ${wantedAt === message.acceptedAt ? '' : wantedAt}`.trimEnd();
    const retry = `${message.id}.${String(next?.index)}.${String(next?.part.tries)}`;
    const sent = sending === undefined ? [] : [`${message.id}.${String(sending.part)}.${String(sending.try)}.sending`];
    const [age = 0, retryAge = 0, sendingAge = 0] = await this.#options.pace.ages(lane, [own, retry, ...sent, ...others]);
    return { age, retryAge, sendingAge };
  }

  async #lookAtContent(connection: Connection, delivery: Delivery): Promise<Readiness> {
    const { scope, rules } = connection;
    const { channel, template } = delivery.message;
    const rendered = delivery.parts === undefined ? await this.#render(scope, delivery, rules) : delivery;
    const { next } = rendered;
    if (next === undefined) return this.#refuse(scope, rendered, nothingToSee);
    if (template === undefined && (await this.#isWindowClosed(scope, rendered, rules)))
      return this.#refuse(scope, rendered, windowClosed(channel));
    const waitMs = await this.#options.pace.pace(toOutboxLane(scope, rendered), channel, rules.pace(rendered.to));
    if (waitMs > 0) return this.#parked(waitMs);
    const tried = { part: next.index, try: next.part.tries + 1 };
    // From here on the age of the try is counted; the last look is at who has the conversation.
    await this.#ages(scope, rendered, tried);
    if (await isWithStaff(scope, rendered)) return this.#refuse(scope, rendered, withheldForStaff);
    if (await isNoticeOfPast(scope, rendered)) return this.#refuse(scope, rendered, handoffIsOver);
    return { kind: 'ready', ready: { ...connection, ...next, tried, delivery: rendered } };
  }

  /** Renders once: every attempt sends the same. */
  async #render(scope: TenantScope, delivery: Delivery, rules: SendingRules): Promise<Delivery> {
    const { id, text, template } = delivery.message;
    const parts = template === undefined ? renderParts(text, rules) : [{ text, plain: text }];
    const step: DeliveryStep = {
      kind: 'parts',
      at: this.#now(),
      parts: parts.map((part: Part) => ({ text: part.text, plain: part.plain })),
    };
    return (await scope.outbox.record(id, [step])) ?? delivery.with([step]);
  }

  async #isWindowClosed(scope: TenantScope, { message }: Delivery, rules: SendingRules): Promise<boolean> {
    const heard = message.inboundAt === undefined ? [] : [Date.parse(message.inboundAt)];
    const known = replyWindow(rules, { lastInboundMs: heard[0], nowMs: this.#nowMs() });
    if (known.state !== 'closed') return false;
    const lastMs = await lastInboundMs(scope.sessions, message.sessionId);
    return replyWindow(rules, { lastInboundMs: lastMs, nowMs: this.#nowMs() }).state === 'closed';
  }

  async #try(ready: Ready, signal: AbortSignal): Promise<LaneStep> {
    const { scope, delivery, tried } = ready;
    if (!(await this.#mayTryBinding(ready))) return this.#parked(LOOK_AGAIN_MS);
    if (!(await scope.outbox.claim(delivery, tried))) return { kind: 'again' };
    await failpoint('delivery.after-claim');
    if (!(await scope.outbox.leave(delivery, tried))) return { kind: 'again' };
    await failpoint('delivery.after-leave');
    const begunAt = this.#now();
    const outcome = this.#bounded(ready, await this.#send(ready, signal));
    await failpoint('delivery.after-send');
    const after = await scope.outbox.record(delivery.message.id, [this.#toStep(ready, { ...tried, begunAt }, outcome)]);
    if (!isSimulated(delivery.to)) await this.#follow(ready, outcome);
    if (after === undefined || after.state === 'waiting') return { kind: 'again' };
    return this.#end(scope, after);
  }

  async #send({ scope, delivery, binding, index, part }: Ready, signal: AbortSignal): Promise<SendOutcome> {
    const { to, message, replyTo } = delivery;
    const { thread, template } = message;
    const { providerUrls: urls, publicUrl } = this.#options.providers;
    const webhookUrl = publicUrl === undefined ? undefined : `${publicUrl}${webhookPaths(message.channel, scope.tenantId)[0]}`;
    const sender = openSender(binding, { urls, timeoutMs: SEND_TIMEOUT_MS, webhookUrl });
    try {
      if (template !== undefined && sender.sendTemplate !== undefined) {
        const { name, language, variables = [] } = template;
        return await sender.sendTemplate({ to, name, language, bodyParameters: variables }, signal);
      }
      return await sender.send(
        {
          to,
          ...(thread !== undefined && { thread }),
          part,
          form: part.form,
          ...(index === 0 && replyTo !== undefined && { replyTo }),
          reference: `${message.id}.${String(index)}`,
        },
        signal,
      );
    } catch (error) {
      if (!signal.aborted) this.#options.log.error({ tenantId: scope.tenantId, messageId: message.id, err: error }, 'nothing was sent');
      return { kind: 'retry', backoff: 'ordinary', code: 'not_sent', message: 'The service stopped before anything was sent.' };
    }
  }

  /** A channel that asks for what it has already got will never accept the part. */
  #bounded({ delivery, part }: Ready, outcome: SendOutcome): SendOutcome {
    const isInVain =
      (outcome.kind === 'resend_plain' && part.form === 'plain') ||
      (outcome.kind === 'resend_without_reply' && delivery.replyTo === undefined) ||
      (outcome.kind === 'resend_to' && outcome.to === delivery.to) ||
      (!withoutEnd.has(outcome.kind) && part.tries - part.earlierTries - part.bindingTries >= TRIES_MAX);
    return isInVain && 'code' in outcome ? { kind: 'refused', code: outcome.code, message: outcome.message } : outcome;
  }

  #toStep({ part }: Ready, tried: Try & { readonly begunAt: string }, outcome: SendOutcome): DeliveryStep {
    const result = { kind: 'result', at: this.#now(), ...tried, outcome: outcome.kind } as const;
    if (outcome.kind === 'sent')
      return { ...result, ...(outcome.providerMessageId !== undefined && { providerMessageId: outcome.providerMessageId }) };
    const failed = { ...result, problem: { code: outcome.code, message: outcome.message } };
    if (outcome.kind === 'resend_to') return { ...failed, to: outcome.to };
    if (outcome.kind !== 'retry') return failed;
    const delayMs = retryDelayMs(outcome, { attempts: part.attempts + 1, random: (this.#options.random ?? Math.random)() });
    return { ...failed, retryAt: delayMs === undefined ? null : new Date(this.#nowMs() + delayMs).toISOString() };
  }

  /** Applies an outcome to the binding and the contact. */
  async #follow(ready: Ready, outcome: SendOutcome): Promise<void> {
    const { scope, delivery, rules } = ready;
    const { channel } = delivery.message;
    if (outcome.kind === 'sent') {
      await scope.channels.note(channel, 'outbound', new Date(this.#nowMs()));
      if (ready.view.state === 'receive_only') await scope.channels.resumeSending(channel);
      if (outcome.providerMessageId !== undefined) await this.#options.receipts.catchUp(scope, channel, outcome.providerMessageId);
      return;
    }
    await this.#noteProblem(scope, delivery, outcome);
    const isOwnLimit = rules.pace(delivery.to).isOwnLimit === true;
    if (outcome.kind === 'retry' && outcome.backoff === 'ordinary' && outcome.afterMs !== undefined && !isOwnLimit)
      await this.#options.pace.hold({ tenantId: scope.tenantId, channel }, Math.min(outcome.afterMs, HOLD_MAX_MS));
    if (outcome.kind === 'resend_to') await this.#moveContact(scope, delivery, outcome.to);
    if (outcome.kind === 'binding_failed') {
      await this.#options.pace.noteBindingRefused({ tenantId: scope.tenantId, channel });
      await stopSending(ready, outcome, { nowMs: this.#nowMs(), log: this.#options.log });
    }
  }

  /**
   * Tries one message now and then through a binding that the provider refuses. What goes to a simulated contact is no
   * try: the provider is not asked.
   */
  async #mayTryBinding({ scope, view, delivery }: Ready): Promise<boolean> {
    const { channel, state } = view;
    if (state !== 'receive_only' || isSimulated(delivery.to)) return true;
    return this.#options.pace.mayTryBinding({ tenantId: scope.tenantId, channel });
  }

  async #moveContact(scope: TenantScope, { message, to }: Delivery, alias: string): Promise<void> {
    await scope.contacts.addAlias({ channel: message.channel, alias, sender: to }).catch((error: unknown) => {
      this.#options.log.warn(
        { tenantId: scope.tenantId, messageId: message.id, err: error },
        'a conversation has moved, and its alias is taken',
      );
    });
  }

  async #noteProblem(scope: TenantScope, { message }: Delivery, problem: DeliveryProblem & { readonly kind: string }): Promise<void> {
    const { channel, id } = message;
    const { kind, code } = problem;
    this.#options.metrics.failed(channel, kind);
    this.#options.log.warn({ tenantId: scope.tenantId, channel, messageId: id, kind, code }, 'a channel did not take a message');
    await scope.channels.noteError(channel, { code, message: problem.message });
  }

  #parked(forMs: number): LaneStep {
    return { kind: 'parked', untilMs: this.#nowMs() + forMs };
  }

  async #expire(scope: TenantScope, delivery: Delivery): Promise<LaneStep> {
    return this.#refuse(scope, delivery, { state: 'expired', problem: delivery.problem ?? neverInTime });
  }

  async #refuse(scope: TenantScope, delivery: Delivery, { state, problem }: Refusal): Promise<LaneStep> {
    const step: DeliveryStep = { kind: 'end', at: this.#now(), state, problem };
    return this.#end(scope, (await scope.outbox.record(delivery.message.id, [step])) ?? delivery.with([step]));
  }

  /** Reports the end before the message leaves its lane: after a crash in between, the next worker reports it again. */
  async #end(scope: TenantScope, delivery: Delivery): Promise<LaneStep> {
    const { message, state } = delivery;
    await this.#options.onReported(scope, delivery);
    await scope.outbox.end(delivery);
    this.#options.metrics.ended(message.channel, state);
    this.#options.log.info(
      { tenantId: scope.tenantId, messageId: message.id, channel: message.channel, kind: message.kind, state },
      'delivery ended',
    );
    return { kind: 'again' };
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString();
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** A reason of the service for not sending a message. */
interface Refusal {
  readonly state: 'failed' | 'expired' | 'withheld';
  readonly problem: DeliveryProblem;
}

/**
 * These outcomes end a part, or do not count: a binding that sends nothing is tried now and then for as long as its
 * message may wait.
 */
const withoutEnd: ReadonlySet<SendOutcome['kind']> = new Set(['sent', 'unknown', 'binding_failed']);
const notSent: DeliveryProblem = { code: 'interrupted', message: 'The service stopped before it was sent.' };
const perhapsSent: DeliveryProblem = {
  code: 'interrupted',
  message: 'The service stopped while it was being sent. It may have arrived.',
};
const neverInTime: DeliveryProblem = { code: 'expired', message: 'It could not be sent in time.' };
const nothingToSee: Refusal = { state: 'failed', problem: { code: 'empty', message: 'Nothing of it can be seen.' } };
const withheldForStaff: Refusal = {
  state: 'withheld',
  problem: { code: 'handoff', message: 'A staff member has the conversation: the agent sends nothing there.' },
};

const handoffIsOver: Refusal = {
  state: 'withheld',
  problem: { code: 'handoff', message: 'The conversation was given back before this could be sent: no staff member is to be announced.' },
};

function windowClosed(channel: MessagingChannel): Refusal {
  const message = `${toAppName(channel)} takes free text only within 24 hours after the contact has written.`;
  return { state: 'withheld', problem: { code: 'window_closed', message } };
}

/** Messages of staff, and the notice that a staff member was requested, go out while staff has the conversation. */
async function isWithStaff(scope: TenantScope, { message, wantedAt }: Delivery): Promise<boolean> {
  const { kind, sessionId } = message;
  if (kind === 'person' || kind === 'notice') return false;
  if (!(await scope.handoffs.isPaused(sessionId)) && !(await hadPersonSince(scope, { sessionId, at: wantedAt }))) return false;
  return !(kind === 'reply' && (await isFromBefore(scope, message)));
}

/** What tells the contact of a handoff that is over by now. Staff who want it all the same send it again. */
async function isNoticeOfPast(scope: TenantScope, { message, wantedAt }: Delivery): Promise<boolean> {
  if (message.kind !== 'notice' || wantedAt !== message.acceptedAt) return false;
  const handoff = await scope.handoffs.find(message.sessionId);
  return handoff?.id === message.turnId && handoff.state !== 'paused';
}

/** What waited while staff had the conversation is not sent late: it does not fit what was written there since. */
async function hadPersonSince(
  scope: TenantScope,
  { sessionId, at }: { readonly sessionId: string; readonly at: string },
): Promise<boolean> {
  const handoff = await scope.handoffs.find(sessionId);
  const endedAt = handoff?.resumedAt ?? handoff?.until ?? null;
  return endedAt !== null && at < endedAt;
}

/**
 * What an agent writes to the contact before it requests a staff member itself, for example that one will answer. It is
 * sent even after the request.
 */
async function isFromBefore(scope: TenantScope, { sessionId, turnId, acceptedAt }: Delivery['message']): Promise<boolean> {
  const handoff = await scope.handoffs.find(sessionId);
  const asker = handoff?.requestedBy;
  return handoff !== undefined && asker?.kind === 'agent' && asker.turnId === turnId && acceptedAt <= handoff.since;
}

function toOutboxLane({ tenantId }: TenantScope, { message }: Delivery): { readonly tenantId: string; readonly lane: string } {
  return { tenantId, lane: readLaneId(message.id) };
}
