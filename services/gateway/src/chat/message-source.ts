import type { TenantScope } from '@concierge/tenant';
import type { Request } from 'express';
import type { Caller } from '../http/call.ts';
import { readTraceparent } from '../http/request-context.ts';

/** Under whose name a message is accepted. */
export interface MessageSource {
  readonly scope: TenantScope;
  readonly keyId: string | null;
  readonly dedupeId: string | null;
  /** The caller's span (W3C Trace Context). */
  readonly traceparent?: string | undefined;
}

/** The identity that a caller's key and `Idempotency-Key` give it. */
export function sourceOfCaller(
  { scope, key }: Caller,
  idempotencyKey: string | undefined,
  request?: Pick<Request, 'headers'>,
): MessageSource {
  const dedupeId = idempotencyKey === undefined ? null : `api:${idempotencyKey}`;
  return { scope, keyId: key.id, dedupeId, traceparent: readTraceparent(request?.headers) };
}
