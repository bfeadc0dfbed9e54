import type { IncomingMessage } from 'node:http';
import { AppError } from '@concierge/contract';

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address === '::1' || /^(?:::ffff:)?127\./u.test(address));
}

/** The name without its port; a page of another site that resolves to this machine (DNS rebinding) cannot forge it. */
function hostName(request: IncomingMessage): string {
  return (request.headers.host ?? '').replace(/:\d+$/u, '').toLowerCase();
}

/**
 * Without an operators' token the gateway answers its ops pages on loopback only, and a forwarded request always comes
 * from there: so the console itself must ask where it came from.
 * @throws AppError not_found when the request may not be forwarded
 */
export function guardOps(request: IncomingMessage, opsTokenIsSet: boolean): void {
  if (opsTokenIsSet) return;
  const direct = request.headers['x-forwarded-for'] === undefined && request.headers.forwarded === undefined;
  if (direct && isLoopback(request.socket.remoteAddress) && loopbackHosts.has(hostName(request))) return;
  throw new AppError('not_found', 'The operations pages answer on this machine only, unless OPS_TOKEN is set.');
}
