import {
  AppError,
  findLastMessage,
  type AcceptedTurn,
  type Actor,
  type HandoffState,
  type HandoffView,
  type HandoffWish,
  type Session,
  type WaitingHandoff,
} from '@concierge/contract';
import { hashParts } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { TurnReceipt } from '../lanes/duplicates.ts';
import type { HandoffNotifications } from './handoff-notifications.ts';
import type { Turns } from '../turns.ts';

export interface HandoffRequestsOptions {
  readonly turns: Pick<Turns, 'accept' | 'cancelRunning' | 'findAccepted'>;
  readonly calls: Pick<HandoffNotifications, 'sendPending'>;
}

/** A staff member's message in the agent's place. */
export interface StaffMessage {
  readonly text: string;
  readonly by: Actor;
  /** The channel's own id of the message; null when it has none. */
  readonly dedupeId: string | null;
  readonly keyId: string | null;
}

interface Requested {
  readonly view: HandoffView;
  readonly isNew: boolean;
}

/** Passes conversations between agents and staff, for every caller: tool, API, command line, channel. */
export class HandoffRequests {
  readonly #options: HandoffRequestsOptions;

  constructor(options: HandoffRequestsOptions) {
    this.#options = options;
  }

  /**
   * An agent requests a handoff in its turn. It may finish its current answer.
   * @throws AppError invalid_request (hours)
   */
  async ask(scope: TenantScope, turn: AcceptedTurn, asked: HandoffWish & { readonly sessionId: string }): Promise<Requested> {
    const { sessionId } = asked;
    const session = await scope.sessions.load(sessionId);
    const isOwn = sessionId === turn.sessionId;
    // The turn's own message is in no session yet.
    const lastWords = isOwn ? turn.text : readLastWords(session);
    const { agent, channel, sender } = isOwn ? turn : (session ?? turn);
    const channelAddress = (isOwn ? turn.channelMessage?.address : undefined) ?? session?.channelAddress ?? null;
    const call = { agent, channel, sender, channelAddress, lastWords, callsOwner: true };
    return this.#request(scope, { ...asked, call });
  }

  /**
   * A staff member takes the conversation over. The agent's running answer is cancelled, also when a handoff had been
   * requested before.
   * @throws AppError not_found, invalid_request (hours)
   */
  async take(scope: TenantScope, sessionId: string, wish: HandoffWish & { readonly notify: boolean }): Promise<Requested> {
    const session = await mustLoad(scope, sessionId);
    const { agent, channel, sender, channelAddress = null } = session;
    const call = { agent, channel, sender, channelAddress, lastWords: readLastWords(session), callsOwner: wish.notify };
    const requested = await this.#request(scope, { sessionId, ...wish, call });
    await this.#options.turns.cancelRunning(scope, sessionId);
    return requested;
  }

  /** Gives the conversation back to the agent. Nothing is sent late. @throws AppError not_found */
  async giveBack(scope: TenantScope, sessionId: string, by: Actor): Promise<'resumed' | 'not_paused'> {
    await mustLoad(scope, sessionId);
    return scope.handoffs.resume(sessionId, by);
  }

  /** @throws AppError not_found */
  async readState(scope: TenantScope, sessionId: string): Promise<HandoffState> {
    await mustLoad(scope, sessionId);
    const [isPaused, handoff] = await Promise.all([scope.handoffs.isPaused(sessionId), scope.handoffs.find(sessionId)]);
    return { isPaused, handoff: handoff ?? null };
  }

  /**
   * Accepts a staff member's message in the agent's place, as a turn of its conversation. The same message again is the
   * same turn, also when the conversation has been given back in between.
   * @throws AppError not_found, conflict (the agent has the conversation), and what Turns.accept throws
   */
  async answer(scope: TenantScope, sessionId: string, { text, by, dedupeId, keyId }: StaffMessage): Promise<TurnReceipt> {
    const { agent, channel, sender } = await mustLoad(scope, sessionId);
    if (!(await scope.handoffs.isPaused(sessionId)) && !(await this.#isKnown(scope, dedupeId))) {
      throw new AppError('conflict', 'The agent has this conversation: take it over first, so that the two of you do not answer at once.');
    }
    return this.#options.turns.accept(scope, {
      origin: 'person',
      agent,
      // Not used: nothing runs in this turn.
      authority: 'cs',
      channel,
      sender,
      contactId: sessionId,
      text,
      attachments: [],
      busy: 'queue',
      dedupeId,
      requestHash: hashParts(['person', sessionId, text], { separator: 'json' }),
      keyId,
      by,
    });
  }

  /** Conversations that wait for staff, the longest wait first, with the facts that a list shows. */
  async waiting(scope: TenantScope, limit: number): Promise<{ readonly items: WaitingHandoff[]; readonly total: number }> {
    const { handoffs } = await scope.handoffs.paused();
    const items = await Promise.all(
      handoffs.slice(0, limit).map(async (handoff): Promise<WaitingHandoff> => {
        const session = await scope.sessions.load(handoff.sessionId);
        const { agent = null, channel = null, title = null } = session ?? {};
        return { ...handoff, agent, channel, title, lastMessage: findLastMessage(session?.messages ?? []) };
      }),
    );
    return { items, total: handoffs.length };
  }

  async #request(
    scope: TenantScope,
    { sessionId, reason, by, hours, call }: HandoffWish & Pick<HandoffView, 'sessionId'> & { readonly call: CallFacts },
  ): Promise<Requested> {
    const lasts = hours ?? (await scope.settings()).handoff?.hours;
    const requested = await scope.handoffs.request(sessionId, { reason, by, hours: lasts, call });
    if (requested.isNew) await this.#options.calls.sendPending(scope);
    return requested;
  }

  async #isKnown(scope: TenantScope, dedupeId: string | null): Promise<boolean> {
    return dedupeId !== null && (await this.#options.turns.findAccepted(scope, dedupeId)) !== undefined;
  }
}

type CallFacts = NonNullable<Parameters<TenantScope['handoffs']['request']>[1]['call']>;

async function mustLoad(scope: TenantScope, sessionId: string): Promise<Session> {
  const session = await scope.sessions.load(sessionId);
  if (session === undefined) throw new AppError('not_found', 'There is no such session.');
  return session;
}

function readLastWords(session: Session | undefined): string | null {
  return session?.messages.findLast((message) => message.role === 'user')?.text ?? null;
}
