import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

it.each(['--version', '-V'])('concierge %s prints the version and the build, whatever the configuration is', async (flag) => {
  await using concierge = await CommandLine.over({ KEY_SECRET: 'short', LOG_LEVEL: 'loud' });
  const manifest = await readFile(new URL('../../../package.json', import.meta.url), 'utf8');
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(manifest));
  expect(await concierge.run(flag)).toEqual({ code: 0, out: `concierge ${version} (source)\n`, err: '' });
  expect(JSON.parse((await concierge.run(flag, '--json')).out)).toEqual({ version, build: 'source' });
  expect((await concierge.run('--help')).err).toContain('KEY_SECRET');
});

it.each(['{ "KEY_SECRET": zyxwvutsrqponm }', '{ "KEY_SECRET": 12345678 }', ''])(
  'a command names a secrets.json that it cannot read, and shows nothing of it: %j',
  async (text) => {
    await using concierge = await CommandLine.over();
    const file = join(concierge.dataDir, 'secrets.json');
    await writeFile(file, text);
    const { code, err } = await concierge.run('tenant', 'list');
    expect({ code, err }).toEqual({ code: 1, err: `concierge: bad configuration: - ${file}: must be a JSON object with texts\n` });
  },
);
