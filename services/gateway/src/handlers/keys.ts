import type { Handlers } from '../http/call.ts';

/** A key mints only scopes that it has itself, so the calling key's scopes are passed along. */
export function keyHandlers(): Pick<Handlers, 'listKeys' | 'createKey' | 'revokeKey' | 'rotateKey'> {
  return {
    listKeys: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.keys.list() }),
    createKey: async ({ caller, body }) => ({ kind: 'answer', status: 201, json: await caller.scope.keys.create(body, caller.key.scopes) }),
    revokeKey: async ({ caller, params }) => {
      await caller.scope.keys.revoke(params.id);
      return { kind: 'answer', status: 204 };
    },
    rotateKey: async ({ caller, params }) => ({
      kind: 'answer',
      status: 201,
      json: await caller.scope.keys.rotate(params.id, caller.key.scopes),
    }),
  };
}
