import { eventually } from '@concierge/testing';

/**
 * Waits until the check no longer throws; fails with its last difference. A page draws in steps, and after the state of
 * a turn comes its text; the index may be behind a turn's end where the machine is slow.
 */
export async function eventuallyHolds(check: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    await check();
    return true;
  });
}
