import { AppError, TenantId } from '@concierge/contract';
import type { Page } from '@concierge/index';
import type { TenantScope, Tenants } from '@concierge/tenant';
import type { TenantOperations } from './tenant-operations.ts';

/** What one page reads at most: each tenant costs a query. */
const TENANTS_PER_PAGE = 200;
/** Between the tenant and the place in its list. */
const CURSOR_MARK = '/';

export interface TenantWalkOptions {
  readonly tenants: Pick<Tenants, 'list' | 'find'>;
  readonly operations: Pick<TenantOperations, 'open'>;
}

interface WalkQuery<Item> {
  /** All when left out. */
  readonly tenant: string | undefined;
  readonly cursor: string | undefined;
  /** One page of one tenant's list. */
  readonly read: (scope: TenantScope, cursor: string | undefined) => Promise<Page<Item>>;
}

interface Step<Item> {
  readonly scope: TenantScope | undefined;
  readonly items: readonly Item[];
  /** Where to go on after this page; null at the end. */
  readonly next: string | null;
}

/**
 * Lists of all tenants, a page of one tenant at a time: tenant by tenant in the order of their ids. It ends after so
 * many tenants that others wait no longer for the process; a caller that has enough ends it sooner.
 * @throws AppError not_found, invalid_request for a cursor of none of its pages
 */
export async function* walkTenants<Item>(
  { tenants, operations }: TenantWalkOptions,
  { tenant, cursor, read }: WalkQuery<Item>,
): AsyncGenerator<Step<Item>, void, undefined> {
  const from = readCursor(cursor);
  const all = tenant === undefined ? await tenants.list() : [(await operations.open(tenant)).tenantId];
  const ids = all.filter((id) => from === undefined || id > from.tenantId || (id === from.tenantId && from.place !== undefined));
  for (const [index, tenantId] of ids.entries()) {
    const scope = await tenants.find(tenantId);
    const afterTenant = index === ids.length - 1 ? null : tenantId;
    let place = from?.tenantId === tenantId ? from.place : undefined;
    do {
      // Nothing of a tenant that has been deleted meanwhile.
      const page: Page<Item> = scope === undefined ? { items: [], nextCursor: null } : await read(scope, place);
      place = page.nextCursor ?? undefined;
      yield { scope, items: page.items, next: place === undefined ? afterTenant : `${tenantId}${CURSOR_MARK}${place}` };
    } while (place !== undefined);
    if (index + 1 >= TENANTS_PER_PAGE) return;
  }
}

interface Place {
  readonly tenantId: string;
  readonly place: string | undefined;
}

function readCursor(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  const [tenantId = '', place] = cursor.split(CURSOR_MARK, 2);
  if (TenantId.safeParse(tenantId).success) return { tenantId, place };
  throw new AppError('invalid_request', undefined, { errors: [{ path: 'cursor', message: 'is not from a page of this list' }] });
}
