import { ConciergeError } from '@concierge/client';
import type { SessionPage } from '@concierge/contract';
import { mergeTurns, type ConversationState } from './conversation-state.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { SavedTurn, SavedTurnStore } from './saved-turns.ts';

/**
 * Turns of one page: enough for all that are under way in one lane. What came before them is read when it is asked for.
 */
export const TURNS_SHOWN = 60;

export interface LoadOptions {
  readonly gateway: GatewayClient;
  readonly saved: SavedTurnStore;
  readonly keepEnded: boolean;
}

type Loaded = Partial<ConversationState>;

/** A conversation that has no id yet: what a reload left of its messages. */
export function loadNew(kept: readonly SavedTurn[]): Loaded {
  return { turns: mergeTurns({ session: null, views: [], saved: kept }) };
}

/** The last turns that are stored, those that are under way, and what this tab has not handed in yet. */
export async function loadConversation(options: LoadOptions, contactId: string, kept: readonly SavedTurn[]): Promise<Loaded> {
  const { gateway } = options;
  const [session, views] = await Promise.all([
    gateway.findSession(contactId, { limit: TURNS_SHOWN }).catch(failureWhenHidden),
    // A key may be allowed to chat and not to list.
    gateway.listTurns(contactId, TURNS_SHOWN).catch(() => []),
  ]);
  const stored = session instanceof ConciergeError ? null : session;
  const turns = mergeTurns({ session: stored, views, saved: kept });
  if (session instanceof ConciergeError && turns.length === 0) throw session;
  const known = stored ?? views[0];
  return {
    ...(stored !== null && { title: stored.title, earlier: stored.before, forkedFrom: stored.forkedFrom?.id ?? null }),
    turns,
    ...(known !== undefined && {
      agent: known.agent,
      channel: known.channel,
      isCustomers: isCustomers(options, { ...known, contactId }, kept),
    }),
  };
}

type KnownConversation = Pick<SessionPage, 'agent' | 'channel'> & { readonly contactId: string };

/** With a key for cs alone the page's user is the customer. */
function isCustomers({ keepEnded, saved }: LoadOptions, known: KnownConversation, kept: readonly SavedTurn[]): boolean {
  if (keepEnded || known.agent === 'admin' || (known.agent !== 'cs' && known.channel === 'web')) return false;
  return kept.length === 0 && !saved.isPlayed(known.contactId);
}

/**
 * A session that has no ended turn yet is not stored, and a key for cs may not read one: turns under way are shown all
 * the same.
 */
function failureWhenHidden(error: unknown): ConciergeError {
  const failure = ConciergeError.from(error);
  if (failure.status === 404) return new ConciergeError('This conversation does not exist.', { status: 404, code: 'not_found' });
  if (failure.code === 'scope_required') return failure;
  throw failure;
}
