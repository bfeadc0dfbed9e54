import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { toContactFolder } from '@concierge/tenant';
import { TestRedis } from '@concierge/testing';
import { CommandLine } from './command-line.ts';

const ann = 'ann@example.com';

let concierge: CommandLine;
beforeEach(async () => {
  concierge = await CommandLine.over();
  await concierge.json('tenant', 'create', 'acme');
  await concierge.withScope('acme', async ({ contacts, memory }) => {
    await contacts.remember({ sender: ann, displayName: 'Ann' });
    await memory.forContact(ann).write({ text: 'Likes green tea.' });
    await memory.forContact(ann).write({ text: 'Lives in Oslo.', title: 'Address' });
  });
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

describe('concierge contact', () => {
  it('lists and shows what is noted about contacts', async () => {
    const id = toContactFolder(ann);
    expect(await concierge.json('contact', 'list', 'acme')).toMatchObject([{ id, sender: ann, displayName: 'Ann' }]);
    expect((await concierge.run('contact', 'list', 'acme')).out).toMatch(/ann@example\.com +Ann +2\n/u);
    for (const given of [id, ann]) expect((await concierge.run('contact', 'show', 'acme', given)).out).toContain('Lives in Oslo.');
    expect((await concierge.run('contact', 'show', 'acme', 'nobody')).err).toBe('concierge: Nothing is noted about nobody.\n');
  });

  it('forgets one note, or all of them', async () => {
    await concierge.json('contact', 'forget', 'acme', ann, '--note', 'memory/address.md');
    expect(await concierge.json('contact', 'show', 'acme', ann)).toMatchObject({ notes: [{ ref: 'MEMORY.md' }] });
    expect((await concierge.run('contact', 'forget', 'acme', ann, '--note', 'memory/address.md')).code).toBe(1);
    await concierge.json('contact', 'forget', 'acme', ann);
    expect(await concierge.json('contact', 'list', 'acme')).toEqual([]);
    expect((await concierge.run('contact', 'forget', 'acme', ann)).code).toBe(1);
  });

  it('erases everything of one, says what was left, and puts it on record without the contact', async () => {
    await using redis = await TestRedis.start();
    const env = { REDIS_URL: redis.url };
    await concierge.withScope('acme', async ({ files, memory }) => {
      await files.writeText('customers.csv', ann);
      await memory.write({ text: `Write to ${ann} on Monday.` });
    });
    const erased = await concierge.runWith(env, 'contact', 'erase', 'acme', ann);
    expect(erased).toMatchObject({ code: 0, err: '' });
    expect(erased.out).toContain('Everything of the contact is gone.\n');
    expect(erased.out).toContain('notes: 2, entries: 1,');
    expect(erased.out).toMatch(/^file +customers\.csv +named$/mu);
    expect(erased.out).toMatch(/^note +MEMORY\.md +cut$/mu);
    expect(await concierge.json('contact', 'list', 'acme')).toEqual([]);
    const audit = await concierge.run('audit', 'acme', '--json');
    expect(audit.out).toContain('"contact.erase"');
    expect(audit.out).not.toContain(ann);
  });

  it('does not erase half of it: without Redis it says why, and nothing is gone', async () => {
    expect((await concierge.run('contact', 'erase', 'acme', ann)).code).toBe(1);
    expect(await concierge.json('contact', 'list', 'acme')).toHaveLength(1);
  });
});
