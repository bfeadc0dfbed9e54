import type { ErasurePlace, ErasureTraces } from '@concierge/contract';
import { readContent, walkTree } from '@concierge/files';
import type { TenantScope } from '../tenant-scope.ts';
import { Literals } from './literals.ts';

const placesMax = 500;
const readMaxBytes = 16 * 1024 * 1024;

/** Keys, sealed credentials, and what contains ids and no words. */
const leftOut = new Set(['keys', 'settings', 'channels', 'mcp', 'widget', 'inbox/.order', 'sessions/.deleted.jsonl']);

/** Where the tenant's files name the contact still, or a person of that name: nothing of it is changed. */
export async function findPlaces(scope: TenantScope, traces: ErasureTraces): Promise<{ places: ErasurePlace[]; hasMore: boolean }> {
  const literals = new Literals(traces);
  const places = new Map<string, ErasurePlace>();
  const own = new Set(['sessions', 'inbox', 'outbox', 'events', 'handoffs', 'cron', 'tenant.json']);
  for await (const { path, content } of walkTree(scope.root, { isWanted: (one) => !leftOut.has(one), isOwn: (name) => own.has(name) })) {
    if (content === undefined) continue;
    if (places.size > placesMax) break;
    const isShort = content.size <= readMaxBytes;
    const isNamed = literals.mayBeNamedIn(path) || (isShort && literals.mayBeNamedIn((await readContent(content)).toString('utf8')));
    if (isNamed || !isShort) places.set(toPlace(path).ref, { ...toPlace(path), why: isNamed ? 'named' : 'unread' });
  }
  return { places: [...places.values()].slice(0, placesMax), hasMore: places.size > placesMax };
}

function toPlace(path: string): Pick<ErasurePlace, 'kind' | 'ref'> {
  const session = /^sessions\/(?:\.revisions\/|\.labels\/)?(?<id>[0-9a-f]{32})[./]/u.exec(path)?.groups?.['id'];
  if (session !== undefined) return { kind: 'session', ref: session };
  const schedule = /^cron\/(?<id>[^/.]+)\./u.exec(path)?.groups?.['id'];
  if (schedule !== undefined) return { kind: 'schedule', ref: schedule };
  return { kind: /^(?:MEMORY\.md$|memory\/|contacts\/)/u.test(path) ? 'note' : 'file', ref: path };
}
