import { z } from 'zod';

function isTimeZone(zone: string): boolean {
  // Offsets such as +02:00 are taken by Intl, too; they know nothing of summer time.
  if (!/^[A-Za-z]/u.test(zone)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

export const TimeZone = z.string().max(64).refine(isTimeZone, 'is not an IANA time zone such as Europe/Berlin');
