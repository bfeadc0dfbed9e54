import type { SessionStore, TenantIndex } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';
import type { SessionsView } from '../tool-context.ts';

export interface SessionSource {
  readonly sessions: Pick<SessionStore, 'view'>;
  readonly index: Pick<TenantIndex, 'listSessions'>;
}

/** Conversations as an agent of this access may see them: cs none but its own. */
export function sessionsView(source: SessionSource, access: ToolAccess, ownId: string): SessionsView {
  return {
    list: async (query) => (access === 'admin' ? (await source.index.listSessions(query)).items : []),
    history: async (id) => (access === 'admin' || id === ownId ? source.sessions.view(id) : undefined),
  };
}
