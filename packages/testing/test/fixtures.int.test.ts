import { stat } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import type { TurnInput } from '@concierge/contract';
import { workerNumber } from '../src/config.ts';
import { findFirstPort } from '../src/free-port.ts';
import { freePort, TestTenants } from '../src/index.ts';
import { TestCore } from '../src/test-core.ts';

describe('tenants of a test', () => {
  it('are seen by another process, and gone with their folder at the end', async () => {
    let folder: string;
    {
      await using files = await TestTenants.start();
      folder = files.dataDir;
      const { tenantId } = await files.scope();
      expect(await (await files.another()).list()).toEqual([tenantId]);
      expect((await files.scope()).tenantId).toBe(tenantId);
    }
    await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('the core of a test', () => {
  it('takes turns at once, and another process of it sees them', async () => {
    await using test = await TestCore.start();
    const scope = await test.scope();
    const input: TurnInput = {
      origin: 'api',
      agent: 'cs',
      authority: 'cs',
      channel: 'web',
      sender: 'ann',
      contactId: null,
      text: 'Hello',
      attachments: [],
      busy: 'queue',
      dedupeId: null,
      requestHash: 'h',
      keyId: null,
    };
    const { turnId } = await test.core.turns.accept(scope, input);
    const other = await test.another('producer');
    expect((await other.turns.find(await other.tenants.open(scope.tenantId), turnId))?.status).toBe('waiting');
  });
});

describe('a free port', () => {
  it('is of a range that no process has which runs test files beside this one', async () => {
    const starts = Array.from({ length: 24 }, (_, worker) => findFirstPort(worker));
    expect(new Set(starts).size).toBe(starts.length);
    const ports = [await freePort(), await freePort()];
    expect(new Set(ports).size).toBe(ports.length);
    for (const port of ports) expect(starts.findLast((start) => start <= port)).toBe(findFirstPort(process.ppid + workerNumber));
  });
});
