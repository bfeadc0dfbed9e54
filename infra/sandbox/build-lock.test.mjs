import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { exclusively } from './build-lock.mjs';

const module = fileURLToPath(new URL('build-lock.mjs', import.meta.url));
const { signal } = new AbortController();
const freshName = () => `\0concierge-test-${randomUUID()}`;

/** Another process that holds the lock until it is killed. */
async function otherHolder(name) {
  const script = `import { exclusively } from ${JSON.stringify(module)};
    const { signal } = new AbortController();
    await exclusively(() => { console.log('held'); return new Promise(() => setInterval(() => {}, 1000)); },
      { onWait: () => {}, signal, name: ${JSON.stringify(name)} });`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

describe('the lock of the image build', () => {
  it('lets one build after the other run', async () => {
    const name = freshName();
    let running = 0;
    let most = 0;
    let waited = 0;
    const build = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => exclusively(build, { onWait: () => (waited += 1), signal, name })));
    expect(most).toBe(1);
    expect(waited).toBe(4);
  });

  it('is free again when its holder was killed', async () => {
    const name = freshName();
    const other = await otherHolder(name);
    const waits = new Promise((resolve) => {
      void exclusively(() => 'built', { onWait: () => other.kill('SIGKILL'), signal, name }).then(resolve);
    });
    expect(await waits).toBe('built');
  });

  it('is free again after a build that failed', async () => {
    const name = freshName();
    const fail = async () => {
      throw new Error('no space left');
    };
    await expect(exclusively(fail, { onWait: () => undefined, signal, name })).rejects.toThrow('no space left');
    expect(await exclusively(() => 'built', { onWait: () => undefined, signal, name })).toBe('built');
  });
});
