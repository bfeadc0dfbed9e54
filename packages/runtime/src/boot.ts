import { readFileSync } from 'node:fs';

/**
 * Differs after each start of the machine, and from other machines (random(4), boot_id); empty where the system does
 * not report it.
 */
export function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
