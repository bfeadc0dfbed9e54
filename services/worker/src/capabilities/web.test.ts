import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { TenantScope } from '@concierge/tenant';
import { UrlAllowlist } from './web.ts';

let scope: TenantScope;

setUpOnce(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  await scope.files.writeText('SOUL.md', 'Our shop is https://shop.example/en (see prices.md and notes.example).');
  await scope.files.writeText('templates/zh.md', '官网：https://zh.example，欢迎。商城：https://mall.example，谢谢。');
  await scope.files.writeText('USER.md', 'The owner banks at https://bank.example/.');
  await scope.files.writeText('MEMORY.md', 'Seen: https://seen.example/.');
  await scope.files.writeText('templates/offer.md', 'Terms: <https://terms.example:8443/a>.');
  await scope.files.writeText('notes/private.md', 'https://private.example/');
  await scope.files.writeText('agents/booker.md', '---\ndescription: Books\npublic: true\n---\nTimes: https://book.example/times.\n');
});

const after = (text: string): UrlAllowlist => new UrlAllowlist({ scope, turn: { agent: 'cs', sessionId: '0'.repeat(32), text } });

describe('an address was mentioned', () => {
  it.each([
    ['https://a.example/x?y=1', 'look at https://a.example/x?y=1'],
    ['https://a.example/x', '(https://a.example/x).'],
    ['https://a.example/x', '[this](https://a.example/x), please'],
    ['https://a.example/x_(y)', 'https://a.example/x_(y)'],
    ['https://a.example/', 'https://a.example'],
    ['https://a.example/x#part', 'http://A.example/x/'],
    ['https://a.example/x', 'a.example/x!'],
    ['https://www.a.example', 'is www.a.example yours?'],
    ['https://a.example/x', '请看https://a.example/x。谢谢'],
    ['https://a.example/', '网址：https://a.example，多少钱'],
    ['https://a.example/x?y=1', 'https://a.example/x?y=1を見てください'],
    ['https://a.example/x', 'is “https://a.example/x” yours?'],
    ['https://a.example/x', 'a.example/x—is it yours?'],
    ['https://b.example/y', '请看https://a.example/x。还有https://b.example/y。谢谢'],
    ['https://b.example/y', 'https://a.example/xとhttps://b.example/yを見てください'],
    ['https://b.example/y', 'a.example/x、b.example/y'],
    ['https://a.example/价格', 'https://a.example/价格'],
    ['https://bücher.example/ü', 'https://bücher.example/ü'],
  ])('by the customer: %s in %j', async (address, text) => {
    expect(await after(text).namedBy(address)).toBe('customer');
  });

  it.each([
    ['https://a.example/x?y=2', 'https://a.example/x?y=1'],
    ['https://a.example/x?name=anna', 'https://a.example/x'],
    ['https://a.example/anna', 'https://a.example/'],
    ['https://anna.a.example/', 'https://a.example/'],
    ['https://a.example:8443/', 'https://a.example/'],
    ['https://a.example.evil.example/', 'a.example'],
    ['https://a.example/', 'write to me@a.example'],
    ['https://a.example/', 'https://a.example/ü'],
    ['https://a.example/', 'https://a.例え.example/'],
    ['not an address', 'not an address'],
  ])('by no one: %s in %j', async (address, text) => {
    expect(await after(text).namedBy(address)).toBeUndefined();
  });

  it.each([
    ['brackets behind it', `https://a.example/${')'.repeat(3_000_000)}x`],
    ['brackets behind it, many times', `https://a.example/${')'.repeat(4000)}x `.repeat(700)],
    ['dots', 'a.'.repeat(1_000_000)],
    ['labels', `${'a-'.repeat(30)}.`.repeat(30_000)],
    ['schemes', 'https://'.repeat(300_000)],
    ['slashes behind it', `a.example/${'/'.repeat(2_000_000)}`],
  ])('after a message that is nothing but one hard address: %s', async (_what, text) => {
    expect(await after(`https://b.example/ ${text}`).namedBy('https://b.example/')).toBe('customer');
  });

  it('by the owner in a text without spaces', async () => {
    for (const address of ['https://zh.example/de', 'https://mall.example/']) expect(await after('').namedBy(address)).toBe('owner');
  });

  it('by a search, to the letter', async () => {
    const places = after('');
    places.add('https://found.example/page');
    expect(await places.namedBy('https://found.example/page#top')).toBe('search');
    expect(await places.namedBy('https://found.example/other')).toBeUndefined();
  });

  it('by the owner with its whole site, where this agent can read it', async () => {
    const places = after('');
    expect(await places.namedBy('https://shop.example/de?sort=price')).toBe('owner');
    expect(await places.namedBy('https://terms.example:8443/b')).toBe('owner');
    for (const host of ['bank.example', 'seen.example', 'private.example', 'prices.md', 'notes.example', 'terms.example']) {
      expect([host, await places.namedBy(`https://${host}/`)]).toEqual([host, undefined]);
    }
  });

  it('by the owner beside any number of earlier versions of skills, and not in those', async () => {
    await scope.files.writeText('skills/booking/SKILL.md', 'Book at https://skill.example/.');
    const versions = join(scope.root, 'skills', '.versions');
    await mkdir(versions);
    const names = Array.from({ length: 501 }, (_, index) => join(versions, String(index)));
    for (const name of names) await writeFile(name, 'https://removed.example/');
    const places = after('');
    expect(await places.namedBy('https://skill.example/today')).toBe('owner');
    expect(await places.namedBy('https://removed.example/')).toBeUndefined();
  });

  it('by the owner in the file of an agent, for that agent alone', async () => {
    const turn = { agent: 'booker', sessionId: '0'.repeat(32), text: '' };
    const places = new UrlAllowlist({ scope, turn });
    expect(await places.namedBy('https://book.example/times?day=monday')).toBe('owner');
    expect(await places.namedBy('https://shop.example/de')).toBe('owner');
    expect(await after('').namedBy('https://book.example/times')).toBeUndefined();
  });
});
