import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Together five seconds, far more than it takes. */
const lookEveryMs = 2;
const looksMax = 2500;

/**
 * Until the first process of a pid namespace has ended, and so all others in it: the kernel lets it end last. It is nobody's child here, so
 * it has to be looked at. Bounded: what is killed and does not die, because a disk does not answer, is left to the end of the turn.
 */
export async function namespaceEnded(firstId: number): Promise<void> {
  for (let look = 0; look < looksMax && !hasEnded(firstId); look += 1) await wait(lookEveryMs);
}

/** Dead and not yet fetched by its parent counts. */
function hasEnded(processId: number): boolean {
  try {
    return /^\d+ \(.*\) [ZX] /su.test(readFileSync(`/proc/${String(processId)}/stat`, 'latin1'));
  } catch {
    return true;
  }
}
