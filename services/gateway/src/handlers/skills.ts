import type { Handlers } from '../http/call.ts';

export function skillHandlers(): Pick<Handlers, 'listSkills' | 'reindexSkills'> {
  return {
    listSkills: async ({ caller }) => ({ kind: 'answer', status: 200, json: [...(await caller.scope.skills.list())] }),
    reindexSkills: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.reindexSkills() }),
  };
}
