import { describe, expect, it } from '@jest/globals';
import { limits, routes } from '@concierge/contract';
import { LargeBodies } from './large-bodies.ts';

const { openAiBodyMaxBytes: largest, largeBodiesMaxBytes: room } = limits;
const { createResponse, chatWithAdmin } = routes;
const sized = (bytes: number): { headers: { 'content-length': string } } => ({ headers: { 'content-length': String(bytes) } });
const forever = async (): Promise<never> => new Promise(() => undefined);
const done = async (): Promise<string> => Promise.resolve('done');

/** With every place taken. */
function full(): LargeBodies {
  const bodies = new LargeBodies();
  for (let held = 0; held < room; held += largest) void bodies.run(createResponse, sized(largest), forever);
  return bodies;
}

describe('LargeBodies', () => {
  it('refuses what no longer fits, before it is read', async () => {
    await expect(full().run(createResponse, sized(largest), done)).rejects.toMatchObject({ code: 'overloaded', retryAfterSeconds: 2 });
  });

  it('counts a body that does not say its size, or says too much, as the largest that is allowed', async () => {
    await expect(full().run(createResponse, { headers: {} }, done)).rejects.toMatchObject({ code: 'overloaded' });
    expect(await new LargeBodies().run(createResponse, sized(2 * room), done)).toBe('done');
  });

  it('has always room for what is no larger than any request', async () => {
    expect(await full().run(createResponse, sized(limits.jsonBodyMaxBytes), done)).toBe('done');
    expect(await full().run(chatWithAdmin, sized(largest), done)).toBe('done');
  });

  it('gives the room back, whether the work was done or failed', async () => {
    const bodies = new LargeBodies();
    for (let held = 0; held <= 2 * room; held += largest) {
      const work = bodies.run(createResponse, sized(largest), async () => Promise.reject(new Error('no')));
      await expect(work).rejects.toThrow('no');
      expect(await bodies.run(createResponse, sized(largest), done)).toBe('done');
    }
  });
});
