import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventually, System, type TenantKeys } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';

let system: System;
let tenant: TenantKeys;

setUpOnce(async (stack) => {
  // No such file: nothing names a key.
  const env = { NODE_ENV: 'production', DEMO_MODEL: '1', PROVIDERS_FILE: '/nonexistent/providers.json' };
  system = stack.use(await System.start({ modelUrl: 'http://127.0.0.1:1/v1', env }));
  tenant = await system.createTenant('acme');
});

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${system.url}${path}`, { ...init, headers: { 'x-api-key': tenant.admin, 'content-type': 'application/json' } });
}

const readiness = async (): Promise<number> => (await fetch(`${system.url}/readyz`)).status;

describe('the demo model in production', () => {
  it('is announced in the log, to the console and in each reply, where DEMO_MODEL=1 asks for it', async () => {
    // What it prints is written to the file by this process, a moment later.
    await eventually(async () => (await system.readServiceLog('worker-0')).includes('replies come from the built-in demo model'));
    expect(await (await ask('/api/tenant')).json()).toMatchObject({ demoModel: true });
    const headers = { accept: 'application/json', 'x-api-key': tenant.admin, 'content-type': 'application/json' };
    const reply = await fetch(`${system.url}/api/admin`, { method: 'POST', headers, body: JSON.stringify({ message: 'Hello' }) });
    expect(await reply.text()).toContain('Demo model');
  });

  it('starts whatever a tenant’s own file contains', async () => {
    const { root } = await system.scope('acme');
    await mkdir(join(root, 'agents'), { recursive: true });
    await writeFile(join(root, 'agents', 'sales.md'), '---\nmodel: nobody/nothing\n---\nYou sell.');
    for (const text of ['{', '{"plan":"standard","model":"nobody/nothing"}']) {
      await writeFile(join(root, 'tenant.json'), text);
      for (const service of [...system.workers, ...system.gateways]) await service.terminate();
      for (const service of [...system.workers, ...system.gateways]) service.start();
      await system.ready();
      expect(system.workers.every(({ alive }) => alive)).toBe(true);
    }
  });

  it('does not answer where nothing asks for it: the service is not ready, and one line names what is missing', async () => {
    const [worker] = system.workers;
    await worker?.terminate();
    const before = (await system.readServiceLog('worker-0')).length;
    worker?.start({ DEMO_MODEL: '' });
    await eventually(() => worker?.alive === false);
    // A worker's last heartbeat counts for ten seconds.
    await eventually(async () => (await readiness()) === 503);
    // What it printed is written behind its end.
    const lines = await eventually(async () => {
      const printed = (await system.readServiceLog('worker-0')).slice(before).split('\n');
      const found = printed.filter((line) => line.includes('DEMO_MODEL'));
      return found.length > 0 ? found : undefined;
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('PROVIDERS_FILE: /nonexistent/providers.json does not exist');
  });
});
