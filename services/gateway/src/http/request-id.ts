import { randomUUID } from 'node:crypto';

const sane = /^[\w.:-]{8,128}$/u;

/** A caller's `X-Request-Id` when it is one that can stand in logs and headers as it is, else a fresh one. */
export function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && sane.test(given) ? given : `r_${randomUUID().replaceAll('-', '')}`;
}
