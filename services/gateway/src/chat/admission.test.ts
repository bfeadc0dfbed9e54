import { describe, expect, it } from '@jest/globals';
import { Admission } from './admission.ts';

describe('Admission', () => {
  it('refuses what is beyond its room, and has room again when one is through, well or not', async () => {
    const admission = new Admission(2);
    const first = Promise.withResolvers<string>();
    const second = Promise.withResolvers<string>();
    const running = [admission.run(async () => first.promise), admission.run(async () => second.promise)];
    await expect(admission.run(async () => Promise.resolve('third'))).rejects.toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 });
    first.resolve('done');
    second.reject(new Error('disk full'));
    await expect(Promise.allSettled(running)).resolves.toMatchObject([{ value: 'done' }, { status: 'rejected' }]);
    expect(await admission.run(async () => Promise.resolve('fourth'))).toBe('fourth');
  });
});
