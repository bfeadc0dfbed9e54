import { pipeline } from 'node:stream/promises';
import { AppError, routes } from '@concierge/contract';
import { reportExpired, type Tenants } from '@concierge/tenant';
import type { Reindexing } from '@concierge/core/reindex';
import type { Asked, TenantOperations } from '@concierge/core/tenant-operations';
import { pageLink, streamed, type Handlers } from '../http/call.ts';

export interface OperatedTenantsOptions {
  readonly operations: TenantOperations;
  readonly tenants: Pick<Tenants, 'audit'>;
}

type TenantHandlers = Pick<
  Handlers,
  | 'listTenants'
  | 'createTenant'
  | 'getOperatedTenant'
  | 'updateOperatedTenant'
  | 'suspendTenant'
  | 'resumeTenant'
  | 'deleteTenant'
  | 'listTenantKeys'
  | 'createTenantKey'
  | 'revokeTenantKey'
  | 'rotateTenantKey'
  | 'exportTenant'
  | 'importTenant'
  | 'eraseTenantContact'
  | 'getTenantErasure'
  | 'previewTenantRetention'
>;

const asked = ({ requestId }: { readonly requestId: string }): Asked => ({ requestId });

/** Tenants as operators manage them; the command line does the same with the same `TenantOperations`. */
export function operatedTenantHandlers({ operations }: Pick<OperatedTenantsOptions, 'operations'>): TenantHandlers {
  return {
    listTenants: async ({ query: { limit, cursor } }) => {
      // One more shows whether there is another page.
      const found = await operations.list({ after: cursor, limit: limit + 1 });
      const json = found.slice(0, limit);
      const next = found.length > limit ? (json.at(-1)?.tenantId ?? null) : null;
      return { kind: 'answer', status: 200, json, headers: pageLink(routes.listTenants.path, { limit }, next) };
    },
    createTenant: async (call) => ({ kind: 'answer', status: 201, json: await operations.create(call.body, asked(call)) }),
    getOperatedTenant: async ({ params }) => ({ kind: 'answer', status: 200, json: await operations.get(params.tenant) }),
    updateOperatedTenant: async (call) => ({
      kind: 'answer',
      status: 200,
      json: await operations.update(call.params.tenant, call.body, asked(call)),
    }),
    suspendTenant: async (call) => ({
      kind: 'answer',
      status: 200,
      json: await operations.setSuspended(call.params.tenant, true, asked(call)),
    }),
    resumeTenant: async (call) => ({
      kind: 'answer',
      status: 200,
      json: await operations.setSuspended(call.params.tenant, false, asked(call)),
    }),
    deleteTenant: async (call) => ({ kind: 'answer', status: 200, json: await operations.delete(call.params.tenant, asked(call)) }),
    listTenantKeys: async ({ params }) => ({ kind: 'answer', status: 200, json: await operations.listKeys(params.tenant) }),
    createTenantKey: async (call) => ({
      kind: 'answer',
      status: 201,
      json: await operations.createKey(call.params.tenant, call.body, asked(call)),
    }),
    revokeTenantKey: async (call) => {
      await operations.revokeKey(call.params.tenant, call.params.id, asked(call));
      return { kind: 'answer', status: 204 };
    },
    rotateTenantKey: async (call) => ({
      kind: 'answer',
      status: 201,
      json: await operations.rotateKey(call.params.tenant, call.params.id, asked(call)),
    }),
    exportTenant: async (call) => {
      const headers = {
        'Content-Type': 'application/gzip',
        'Content-Disposition': `attachment; filename="${call.params.tenant}.tar.gz"`,
      };
      // Nothing leaves then: there is nothing to read, and nothing to put on record.
      if (call.request.method === 'HEAD') {
        await operations.open(call.params.tenant);
        call.response.status(200).set(headers).end();
        return streamed;
      }
      const { bytes } = await operations.export(call.params.tenant, asked(call));
      call.response.status(200).set(headers);
      await pipeline(bytes, call.response);
      return streamed;
    },
    eraseTenantContact: async (call) => ({
      kind: 'answer',
      status: 202,
      json: await operations.eraseContact(call.params.tenant, call.body, asked(call)),
    }),
    getTenantErasure: async ({ params }) => ({
      kind: 'answer',
      status: 200,
      json: await (await operations.open(params.tenant)).erasures.report(params.id),
    }),
    previewTenantRetention: async ({ params, query }) => ({
      kind: 'answer',
      status: 200,
      json: await reportExpired(await operations.open(params.tenant), query),
    }),
    importTenant: async (call) => ({
      kind: 'answer',
      status: 201,
      json: await operations.import(receive(call.request), call.query.as, asked(call)),
    }),
  };
}

/** The bytes of a request. @throws AppError invalid_request, when its client leaves before its end */
async function* receive(request: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* request;
  } catch (error) {
    throw new AppError('invalid_request', 'The body has no end.', { cause: error });
  }
}

/** The index is a copy of the files: compared with them, and put right. */
export function reindexHandlers({ reindexing }: { readonly reindexing: Reindexing }): Pick<Handlers, 'reindexTenants'> {
  return {
    reindexTenants: async (call) => ({ kind: 'answer', status: 200, json: await reindexing.reindexSome(call.body, asked(call)) }),
  };
}

export function auditHandlers({ operations, tenants }: OperatedTenantsOptions): Pick<Handlers, 'listAudit' | 'listOperatorAudit'> {
  return {
    listAudit: async ({ caller, query: { limit, cursor } }) => {
      const { entries, nextCursor } = await caller.scope.audit.page({ limit, cursor });
      return { kind: 'answer', status: 200, json: entries, headers: pageLink(routes.listAudit.path, { limit }, nextCursor) };
    },
    listOperatorAudit: async ({ query: { tenant, limit, cursor } }) => {
      const log = tenant === undefined ? tenants.audit : (await operations.open(tenant)).audit;
      const { entries, nextCursor } = await log.page({ limit, cursor });
      return {
        kind: 'answer',
        status: 200,
        json: entries,
        headers: pageLink(routes.listOperatorAudit.path, { tenant, limit }, nextCursor),
      };
    },
  };
}
