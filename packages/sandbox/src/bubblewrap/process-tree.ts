import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Together five seconds, far more than it takes. */
const lookEveryMs = 2;
const looksMax = 2500;

/**
 * Waits until the first process of a pid namespace has ended, and with it all others: the kernel ends it last. It is
 * not a child of this process, so it is polled. Bounded: a killed process that does not die, because a disk does not
 * answer, is left to the end of the turn.
 */
export async function namespaceEnded(firstId: number): Promise<void> {
  for (let look = 0; look < looksMax && !hasEnded(firstId); look += 1) await wait(lookEveryMs);
}

/** A dead process that its parent has not reaped counts as ended. */
function hasEnded(processId: number): boolean {
  try {
    return /^\d+ \(.*\) [ZX] /su.test(readFileSync(`/proc/${String(processId)}/stat`, 'latin1'));
  } catch {
    return true;
  }
}
