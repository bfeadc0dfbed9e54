import { WidgetView } from '@concierge/contract';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;
beforeEach(async () => {
  concierge = await CommandLine.over();
  await concierge.json('tenant', 'create', 'acme');
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

describe('concierge widget', () => {
  it('sets it up, prints the line for the pages, and keeps what is not given again', async () => {
    expect(await concierge.json('widget', 'show', 'acme')).toMatchObject({ enabled: false, key: null, snippet: null });
    const enabled = await concierge.run('widget', 'enable', 'acme', '--origin', 'https://shop.example', '--title', 'Ask us');
    const { key } = WidgetView.parse(await concierge.json('widget', 'show', 'acme'));
    expect(enabled.out).toContain(`data-key="${String(key)}"`);
    const { out } = await concierge.runWith({ PUBLIC_URL: 'https://chat.example.com/c' }, 'widget', 'show', 'acme');
    expect(out).toContain(`<script src="https://chat.example.com/c/widget.js" data-key="${String(key)}" async></script>`);
    await concierge.json('widget', 'enable', 'acme', '--position', 'left');
    expect(await concierge.json('widget', 'disable', 'acme')).toMatchObject({
      enabled: false,
      key,
      origins: ['https://shop.example'],
      appearance: { title: 'Ask us', position: 'left' },
    });
  });

  it('shows a secret once, and asks for tokens only when there is one', async () => {
    expect((await concierge.run('widget', 'enable', 'acme', '--require-token')).err).toContain('secret');
    const { secret } = z.object({ secret: z.string() }).parse(await concierge.json('widget', 'rotate-secret', 'acme'));
    await concierge.json('widget', 'enable', 'acme', '--require-token');
    const shown = await concierge.run('widget', 'show', 'acme');
    expect(shown.out).not.toContain(secret);
    expect(shown.out).toContain('only with a sender token');
    expect(await concierge.json('widget', 'enable', 'acme', '--no-require-token')).toMatchObject({
      requireSenderToken: false,
      secret: 'set',
    });
  });

  it('replaces the key', async () => {
    const before = WidgetView.parse(await concierge.json('widget', 'enable', 'acme'));
    const after = WidgetView.parse(await concierge.json('widget', 'rotate-key', 'acme'));
    expect(after.key).not.toBe(before.key);
    await concierge.withScope('acme', async (scope) => {
      expect(await scope.widget.open(before.key ?? '')).toBeUndefined();
      expect(await scope.widget.open(after.key ?? '')).toBeDefined();
    });
  });

  it.each([
    ['--origin', 'https://shop.example/path'],
    ['--origin', 'http://shop.example'],
    ['--origin', '*'],
    ['--colour', 'red'],
    ['--position', 'top'],
    ['--title', ''],
  ])('refuses %s %s', async (...args) => {
    const { code, err } = await concierge.run('widget', 'enable', 'acme', ...args);
    expect(code).toBe(1);
    expect(err).toContain('not settings of a widget');
  });
});
