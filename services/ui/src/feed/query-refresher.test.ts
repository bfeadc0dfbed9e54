import { describe, expect, it } from '@jest/globals';
import type { FeedEvent } from '@concierge/client';
import { eventually, gate } from '@concierge/testing';
import { listTouched, QueryRefresher } from './query-refresher.ts';

const names = (event: FeedEvent): string[] => listTouched(event).map((prefix) => JSON.stringify(prefix));
const begun: FeedEvent = { kind: 'turn', id: 't', contact_id: 'c', status: 'running' };
const handoff: FeedEvent = { kind: 'handoff', id: 'c' };

describe('listTouched', () => {
  it('names the turn itself and the lists of turns, and at its end the lists that have it from then on', () => {
    expect(names(begun)).toEqual(['["listTurns"]', '["getTurn",{"id":"t"}]', '["getTurnTrace",{"id":"t"}]', '["handoff","c"]']);
    for (const status of ['done', 'failed', 'cancelled'] as const)
      expect(names({ ...begun, status })).toEqual([
        ...names(begun),
        '["sessions"]',
        '["listSessions"]',
        '["getUsage"]',
        '["listScheduleRuns"]',
        '["getSession",{"id":"c"}]',
        '["getSessionContact",{"id":"c"}]',
      ]);
  });

  it.each<[FeedEvent, string[]]>([
    [
      handoff,
      [
        '["handoffs"]',
        '["listHandoffs"]',
        '["handoff","c"]',
        '["getHandoff",{"id":"c"}]',
        '["getSessionStaff",{"id":"c"}]',
        '["sessions"]',
        '["listSessions"]',
      ],
    ],
    [{ kind: 'schedule', id: 's' }, ['["listSchedules"]', '["getSchedule"]', '["listScheduleRuns"]']],
    [
      { kind: 'delivery', id: 'm' },
      ['["getTurn"]', '["getTurnTrace"]', '["listScheduleRuns"]', '["listChannels"]', '["getChannel"]', '["listDeliveries"]'],
    ],
  ])('names what %j changes', (event, expected) => {
    expect(names(event)).toEqual(expected);
  });

  it('names each list once when all may have changed, and all that any change touches', () => {
    const all = names({ kind: 'again' });
    expect(new Set(all).size).toBe(all.length);
    const kinds = ['session', 'schedule', 'delivery'] as const;
    const changes: readonly FeedEvent[] = [
      { ...begun, kind: 'turn', status: 'done' },
      handoff,
      ...kinds.map((kind) => ({ kind, id: 'x' })),
    ];
    const touched = changes.flatMap((event) => listTouched(event)).map(([first]) => JSON.stringify([first]));
    expect(new Set(touched)).toEqual(new Set(all));
  });
});

describe('a refresher', () => {
  it('asks at once, and once more after a rest for all that has changed meanwhile', async () => {
    const [answered, rested] = [gate(), gate()];
    const asked: string[] = [];
    const refresher = new QueryRefresher({
      refresh: async ([first]) => {
        if (typeof first === 'string') asked.push(first);
        await answered.opened;
      },
      rest: async () => rested.opened,
    });
    const delivery: FeedEvent = { kind: 'delivery', id: 'm' };
    const lists = ['getTurn', 'getTurnTrace', 'listScheduleRuns', 'listChannels', 'getChannel', 'listDeliveries'];
    refresher.touch(delivery);
    expect(asked).toEqual(lists);
    refresher.touch(delivery);
    refresher.touch(delivery);
    answered.open();
    refresher.touch(delivery);
    expect(asked).toEqual(lists);
    rested.open();
    await eventually(() => asked.length >= 2 * lists.length);
    refresher.touch(delivery);
    await eventually(() => asked.length >= 3 * lists.length);
    expect(asked.toSorted()).toEqual([...lists, ...lists, ...lists].toSorted());
  });
});
