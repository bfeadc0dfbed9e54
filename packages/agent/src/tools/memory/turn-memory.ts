import type { AcceptedTurn } from '@concierge/contract';
import { toNotesOwner, type MemoryAnswer, type MemoryFiles, type MemoryQuery, type TenantScope } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';

type MemoryQuestion = Pick<MemoryQuery, 'text' | 'limit' | 'offset' | 'kinds' | 'signal'>;

export type TurnMemory = Pick<MemoryFiles, 'write' | 'get' | 'list' | 'forget'> & {
  readonly search: (question: MemoryQuestion) => Promise<MemoryAnswer>;
};

/**
 * Earlier notes and messages, as far as this turn may read them: the owner's notes and every conversation for the
 * admin; for cs this contact's notes and its own conversations with this agent.
 */
export function turnMemory(
  scope: Pick<TenantScope, 'memory' | 'memorySearch'>,
  access: ToolAccess,
  turn: Pick<AcceptedTurn, 'agent' | 'sender' | 'sessionId'>,
): TurnMemory {
  const { agent, sender, sessionId } = turn;
  const files = access === 'admin' ? scope.memory : scope.memory.forContact(toNotesOwner(turn));
  const searcher = access === 'admin' ? ({ access: 'owner' } as const) : ({ access: 'contact', agent, sender, sessionId } as const);
  return {
    write: async (note) => files.write(note),
    get: async (ref) => files.get(ref),
    list: async () => files.list(),
    forget: async (ref) => {
      await files.forget(ref);
      await scope.memorySearch.forgetNote(searcher, ref);
    },
    search: async (question) => scope.memorySearch.search(searcher, question),
  };
}
