import type { SessionListItem, SessionView, UsageRow } from '@concierge/contract';
import type { SessionStore, TenantIndex } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';

interface SessionsSource {
  readonly sessions: Pick<SessionStore, 'view'>;
  readonly index: Pick<TenantIndex, 'listSessions'>;
}

export interface TurnSessions {
  readonly list: (query: { limit: number; agent: string | undefined }) => Promise<readonly SessionListItem[]>;
  /** The whole conversation; undefined when there is none that this agent may see. */
  readonly history: (sessionId: string) => Promise<SessionView | undefined>;
}

/** Conversations as an agent of this access may see them: cs none but its own. */
export function turnSessions(source: SessionsSource, access: ToolAccess, ownId: string): TurnSessions {
  return {
    list: async (query) => (access === 'admin' ? (await source.index.listSessions(query)).items : []),
    history: async (id) => (access === 'admin' || id === ownId ? source.sessions.view(id) : undefined),
  };
}

/** Reads what the turns of a tenant have used that ended today, by UTC. */
export function usageToday(index: Pick<TenantIndex, 'usage'>, now: () => Date = () => new Date()): () => Promise<readonly UsageRow[]> {
  return async () => {
    const day = now().toISOString().slice(0, 'YYYY-MM-DD'.length);
    return index.usage({ from: day, to: day });
  };
}
