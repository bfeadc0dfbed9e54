import { describe, expect, it } from '@jest/globals';
import { Heartbeats } from './event-stream.ts';

class Member {
  beats: number[] = [];
  quietSinceMs = 0;
  nowMs = 0;

  beat(): void {
    this.beats.push(this.nowMs);
    this.quietSinceMs = this.nowMs;
  }
}

function run(heartbeats: Heartbeats, member: Member, { seconds, speaksAt = [] }: { seconds: number; speaksAt?: readonly number[] }): void {
  for (let second = 1; second <= seconds; second += 1) {
    member.nowMs = second * 1000;
    if (speaksAt.includes(second)) member.quietSinceMs = member.nowMs;
    heartbeats.tick(member.nowMs);
  }
}

describe('Heartbeats', () => {
  it('beats after every 15 s of silence', () => {
    const member = new Member();
    using heartbeats = new Heartbeats(new Set([member]));
    run(heartbeats, member, { seconds: 61 });
    expect(member.beats).toHaveLength(4);
    for (const [index, at] of member.beats.entries()) expect(Math.abs(at - (index + 1) * 15_000)).toBeLessThanOrEqual(1000);
  });

  it('counts the silence from the last word, not from the last beat', () => {
    const member = new Member();
    using heartbeats = new Heartbeats(new Set([member]));
    run(heartbeats, member, { seconds: 26, speaksAt: [10] });
    expect(member.beats).toHaveLength(1);
    expect(member.beats[0]).toBeGreaterThanOrEqual(24_500);
  });

  it('beats only streams that are in the set', () => {
    const member = new Member();
    const streams = new Set([member]);
    using heartbeats = new Heartbeats(streams);
    streams.delete(member);
    run(heartbeats, member, { seconds: 40 });
    expect(member.beats).toEqual([]);
  });
});
