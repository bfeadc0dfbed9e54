import { describe, expect, it } from '@jest/globals';
import { fitContext, type FittingRoom, type PromptSources } from './system-prompt.ts';

/** A token per character makes the arithmetic of these tests readable. */
const room: FittingRoom = { contextWindow: 40_000, estimateTokens: (text) => text.length, agent: 'admin', access: 'admin' };
const sources: PromptSources = { files: [], heartbeat: null, skills: [], part: null };
const file = (name: string, text: string): { name: string; text: string; bytes: number } => ({ name, text, bytes: text.length });
const lines = (count: number): string => Array.from({ length: count }, (_, index) => `note ${String(index)}`).join('\n');

describe('what tenants write of a prompt', () => {
  it('is as it is while it takes no more than a quarter of the window', () => {
    const files = [file('SOUL.md', 'be kind'), file('MEMORY.md', 'x'.repeat(3000))];
    const skills = [{ name: 'refund', description: 'How to refund' }];
    const given = { files, heartbeat: 'look', skills, part: 'You sell.' };
    expect(fitContext(given, room)).toEqual({ ...given, skillsLeftOut: 0, cuts: [] });
  });

  it('keeps short parts whole, and has long ones share the rest alike', () => {
    const files = [file('SOUL.md', 'be kind'), file('USER.md', 'u'.repeat(30_000)), file('MEMORY.md', 'm'.repeat(90_000))];
    const fitted = fitContext({ ...sources, files, heartbeat: 'look' }, room);
    expect(fitted.files[0]?.text).toBe('be kind');
    expect(fitted.heartbeat).toBe('look');
    expect(fitted.cuts).toEqual([
      { name: 'USER.md', shownBytes: 4994, bytes: 30_000 },
      { name: 'MEMORY.md', shownBytes: 4994, bytes: 90_000 },
    ]);
  });

  it('marks the cut in the last line of a cut part, and where to read on', () => {
    const text = lines(2000);
    const [user, memory] = fitContext({ ...sources, files: [file('USER.md', text), file('MEMORY.md', text)] }, room).files;
    const lastLine = (shown: string | undefined): string => shown?.split('\n').at(-1) ?? '';
    expect(lastLine(user?.text)).toMatch(
      /^\[Cut here: USER.md has 18889 bytes, and its first 5000 stand here\. Read on with read, path "USER\.md", offset \d+\.\]$/u,
    );
    const offset = Number(/offset (\d+)/u.exec(lastLine(memory?.text))?.[1]);
    expect(lastLine(memory?.text)).toContain('memory_get, ref "MEMORY.md"');
    // The line that was cut in its middle is the first of the rest.
    expect(text.split('\n')[offset - 1]?.startsWith(memory?.text.split('\n').at(-2) ?? '?')).toBe(true);
  });

  it('names no tool to a customer’s agent that it has not', () => {
    const files = [file('SOUL.md', 's'.repeat(60_000)), file('MEMORY.md', 'm'.repeat(60_000))];
    const [soul, memory] = fitContext({ ...sources, files }, { ...room, agent: 'cs', access: 'cs' }).files;
    expect(soul?.text).toContain('The rest cannot be read in this conversation.');
    expect(memory?.text).toContain('memory_get');
  });

  it('marks a file of which only the beginning was read', () => {
    const [memory] = fitContext({ ...sources, files: [{ name: 'MEMORY.md', text: 'start', bytes: 2_000_000 }] }, room).files;
    expect(memory?.text).toContain('start\n[Cut here: MEMORY.md has 2000000 bytes, and its first 5 stand here.');
  });

  it('bounds HEARTBEAT, an agent’s own part and the skills, too', () => {
    const skills = Array.from({ length: 500 }, (_, index) => ({ name: `skill-${String(index)}`, description: 'd'.repeat(1000) }));
    const given = { ...sources, heartbeat: 'h'.repeat(50_000), part: 'p'.repeat(50_000), skills };
    const fitted = fitContext(given, { ...room, agent: 'sales' });
    expect(fitted.cuts.map(({ name }) => name)).toEqual(['HEARTBEAT.md', 'agents/sales.md']);
    expect(fitted.skills.length + fitted.skillsLeftOut).toBe(500);
    expect(fitted.skills.length).toBeGreaterThan(1);
    expect(JSON.stringify([fitted.heartbeat, fitted.part, fitted.skills]).length).toBeLessThan(11_000);
  });
});
