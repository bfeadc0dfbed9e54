import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { eventually, freePort } from '@concierge/testing';

/** The protocol's own reference server, as npm has it, in a separate process: revision 2025-11-25 with sessions. */
export async function startReferenceServer(): Promise<{ readonly url: string } & AsyncDisposable> {
  const folder = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json'));
  const port = await freePort();
  const child = spawn(process.execPath, [join(folder, 'dist', 'index.js'), 'streamableHttp'], {
    env: { PATH: '/usr/bin:/bin', PORT: String(port) },
    stdio: 'ignore',
  });
  const url = `http://127.0.0.1:${String(port)}/mcp`;
  await eventually(async () => (await fetch(url, { method: 'OPTIONS' })).status > 0);
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
