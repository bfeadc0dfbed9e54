import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { TestEvents } from './test-events.ts';

const teller = fileURLToPath(new URL('./event-teller.ts', import.meta.url));

/** Runs a process that emits an event and dies at the fail point; it has exited when this returns. */
async function tellAndDie(fixture: TestEvents, place: string, failpoint: string): Promise<void> {
  const args = ['--conditions=@concierge/source', '--no-warnings', teller, fixture.redis.url, fixture.dataDir, place, `${failpoint}:kill`];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [, signal] = await once(child, 'exit');
  expect(signal).toBe('SIGKILL');
}

/** A process dies at this place; another worker and its reconciler continue. */
async function sentBy(failpoint: string): Promise<{ ids: Set<string | undefined>; requests: number; sent: number }> {
  await using fixture = await TestEvents.start();
  const receiver = await fixture.receiver();
  await (await fixture.scope()).events.endpoints.create({ url: receiver.url() });
  await tellAndDie(fixture, receiver.place, failpoint);
  fixture.worker({ allow: [receiver.place] });
  fixture.reconciler.start();
  const { id } = await fixture.eventThat(({ status }) => status === 'sent');
  await fixture.reconciler.stop();
  const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
  return { ids: ids.union(new Set([id])), requests: receiver.received.length, sent: (await fixture.events()).length };
}

const singly = { ids: 1, requests: 1, sent: 1 };

describe('an event under kill -9', () => {
  it('is sent all the same, with one id, and twice only when the answer was lost', async () => {
    const places = ['after-file', 'before-wake-up', 'after-wake-up', 'before-send', 'after-send', 'before-move'];
    const outcomes = await Promise.all(
      places.map(async (place) => {
        const { ids, requests, sent } = await sentBy(`events.${place}`);
        return [place, { ids: ids.size, requests, sent }] as const;
      }),
    );
    // Whether the wake-up was answered before the process died is left to chance there.
    const received = outcomes.map(([place, outcome]) => [place, place === 'after-wake-up' ? { ...outcome, requests: 1 } : outcome]);
    expect(Object.fromEntries(received)).toEqual({
      'after-file': singly,
      'before-wake-up': singly,
      'after-wake-up': singly,
      'before-send': singly,
      'after-send': { ...singly, requests: 2 },
      'before-move': singly,
    });
  });
});
