import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadSecrets, openDataFolder } from './data-folder.mjs';
import { demoKeys, renewRefused } from './demo-tenant.mjs';
import { childEnvironment } from './services.mjs';

describe('the keys of the demo tenant', () => {
  let folder;
  let gateway;
  let refused;
  beforeEach(async () => {
    folder = openDataFolder({ DATA_DIR: mkdtempSync(join(tmpdir(), 'concierge-demo-')) });
    refused = new Set();
    gateway = createServer((request, response) => response.writeHead(refused.has(request.headers['x-api-key']) ? 401 : 200).end());
    gateway.listen(0, '127.0.0.1');
    await once(gateway, 'listening');
  });
  afterEach(async () => {
    gateway.close();
    gateway.closeAllConnections();
    await once(gateway, 'close');
    rmSync(folder, { recursive: true, force: true });
  });

  it('stay the same over starts, and are made anew where the gateway refuses them', async () => {
    const { PATH, HOME } = process.env;
    const env = childEnvironment({ PATH, HOME, ENV_FILE: '/dev/null', DATA_DIR: folder, ...loadSecrets(folder, {}) });
    const renew = async (keys) => renewRefused(keys, { port: gateway.address().port, dataFolder: folder, env });
    const first = await demoKeys(folder, env);
    expect(await renew(first)).toEqual(first);
    // Made with another KEY_SECRET, or revoked since.
    refused.add(first.cs);
    const second = await renew(first);
    expect(second).toEqual({ admin: expect.stringMatching(/^ck_live_/u), cs: expect.stringMatching(/^ck_live_/u) });
    expect([second.admin, second.cs]).not.toContain(first.cs);
    expect(await demoKeys(folder, env)).toEqual(second);
    expect(await renew(second)).toEqual(second);
  });
});
