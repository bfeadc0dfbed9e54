import { channelNames } from '@concierge/contract';
import { tenantOwner, type PassageKind, type PassageScope } from '@concierge/index';
import { toContactFolder, toNotesOwner, deriveSessionId } from '../sessions/session-id.ts';

/** Who searches: the owner, or one contact in a turn of one agent. */
export type Searcher =
  | { readonly access: 'owner' }
  | { readonly access: 'contact'; readonly agent: string; readonly sender: string | null; readonly sessionId: string };

/**
 * What a searcher may find. The owner: the tenant's own notes and every conversation; what is kept about contacts is
 * theirs. A contact: its notes, and its own conversations with this agent, whose ids follow from who it is: there is no
 * list to filter, so nothing to forget.
 */
export function buildPassageScope(searcher: Searcher, kinds: readonly PassageKind[]): PassageScope {
  if (searcher.access === 'owner') return { owner: tenantOwner, sessions: 'all', kinds };
  const { agent, sender, sessionId } = searcher;
  const own = sender === null ? [] : channelNames.map((channel) => deriveSessionId(agent, channel, sender));
  return { owner: toContactFolder(toNotesOwner(searcher)), sessions: [...new Set([...own, sessionId])], kinds };
}

/** The owner of the conversation. */
export function toSessionOwner({
  agent,
  sender,
  id,
}: {
  readonly agent: string;
  readonly sender: string | null;
  readonly id: string;
}): string {
  return agent === 'admin' ? tenantOwner : toContactFolder(toNotesOwner({ sender, sessionId: id }));
}
