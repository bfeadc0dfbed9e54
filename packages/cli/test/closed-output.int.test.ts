import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '@concierge/testing';
import { expect, it } from '@jest/globals';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

it('a command ends as ever, and says nothing of it, where the reader of its output has gone', async () => {
  await using folder = await temporaryDirectory();
  const env = { DATA_DIR: folder.path, KEY_SECRET: 'a secret that is long enough for keys' };
  const flags = ['--conditions=@concierge/source', '--no-warnings'];
  const child = spawn(process.execPath, [...flags, main, '--help'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  expect({ code, said }).toEqual({ code: 0, said: '' });
});
