import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createLog } from '@concierge/runtime';
import { Tenants } from '@concierge/tenant';
import { openIndex } from '@concierge/index';
import { countUnanswered, eventually, startScriptedSystem, System, temporaryDirectory } from '@concierge/testing';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';

const main = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const Reply = z.object({ turnId: z.string(), contact_id: z.string() });
const Created = z.object({ tenantId: z.string(), keys: z.object({ admin: z.string() }) });
const noSandbox = { SANDBOX: 'off' };
const keySecret = 'k'.repeat(64);
const secrets = { KEY_SECRET: keySecret, SECRETS_KEY: keySecret };

/** What a client was told: the turn is answered. */
interface Answered {
  readonly tenantId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly message: string;
}

async function concierge(dataDir: string, ...args: string[]): Promise<unknown> {
  const env = { PATH: '/usr/bin:/bin', DATA_DIR: dataDir, ...secrets };
  const script = ['--conditions=@concierge/source', '--no-warnings', main, ...args, '--json'];
  const run = promisify(execFile)(process.execPath, script, { env });
  const { stdout } = await run.catch((error: unknown) => {
    const told = z.object({ stderr: z.string() }).safeParse(error).data?.stderr;
    throw new Error(`concierge ${args.join(' ')}: ${told ?? ''}`, { cause: error });
  });
  return JSON.parse(stdout);
}

/** Asks in one conversation, one message after the other, until it is told to stop; what was answered. */
async function converse(
  system: System,
  { tenantId, admin, name }: { readonly tenantId: string; readonly admin: string; readonly name: string },
  { answered, isOver }: { readonly answered: Answered[]; readonly isOver: AbortSignal },
): Promise<void> {
  let contact: string | undefined;
  for (let number = 0; !isOver.aborted; number += 1) {
    const message = `[[say:hello]] ${name} ${String(number)}`;
    const response = await fetch(`${system.url}/api/admin`, {
      method: 'POST',
      headers: { 'X-API-Key': admin, 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify({ message, ...(contact === undefined ? {} : { contact_id: contact }) }),
    });
    if (response.status !== 200) continue;
    const { turnId, contact_id: sessionId } = Reply.parse(await response.json());
    contact = sessionId;
    answered.push({ tenantId, sessionId, turnId, message });
  }
}

/** Those of these turns that the tenants of a folder do not have as answered, with their message. */
async function findMissing(dataDir: string, wanted: readonly Answered[]): Promise<string[]> {
  const log = createLog({ service: 'test', level: 'silent' });
  const index = await openIndex({ databaseUrl: undefined, dataDir, log });
  const tenants = new Tenants({ dataDir, index, keySecret, secretsKey: keySecret, log });
  try {
    const missing: string[] = [];
    for (const { tenantId, sessionId, turnId, message } of wanted) {
      const scope = await tenants.find(tenantId);
      const session = await scope?.sessions.load(sessionId);
      const isThere =
        session?.turns.some(({ id, status }) => id === turnId && status === 'done') === true &&
        session.messages.some((one) => one.role === 'user' && one.turnId === turnId && one.text.includes(message));
      if (!isThere) missing.push(`${tenantId} ${message}`);
    }
    return missing;
  } finally {
    await index.close();
  }
}

describe('a backup of a deployment under load', () => {
  it('has everything that was answered before it began, and what was accepted is answered where it is restored', async () => {
    await using stack = new AsyncDisposableStack();
    const { system, model } = await startScriptedSystem(stack, { workers: 2, env: { ...noSandbox, ...secrets } });
    const restored = stack.use(await temporaryDirectory()).path;
    const file = join(stack.use(await temporaryDirectory()).path, 'all.tar.gz');
    const keys = [];
    for (const id of ['one', 'two']) keys.push(Created.parse(await concierge(system.dataDir, 'tenant', 'create', id)));
    const answered: Answered[] = [];
    const isOver = new AbortController();
    const talks = keys.flatMap(({ tenantId, keys: { admin } }) =>
      ['a', 'b'].map(async (name) => converse(system, { tenantId, admin, name }, { answered, isOver: isOver.signal })),
    );
    await eventually(() => answered.length >= 12, { timeoutMs: 240_000 });
    const before = [...answered];
    const report = await concierge(system.dataDir, 'backup', file);
    expect(report).toMatchObject({ tenants: 2, leftOut: 0, cutShort: 0, copied: [] });
    isOver.abort();
    await Promise.all(talks);
    expect(answered.length).toBeGreaterThan(before.length);

    expect(await concierge(restored, 'restore', file)).toMatchObject({ tenants: ['one', 'two'], isIndexed: true });
    expect(await findMissing(restored, before)).toEqual([]);
    await mkdir(join(restored, 'logs'));
    await using second = await System.start({ modelUrl: model.url, dataDir: restored, env: { ...noSandbox, ...secrets } });
    await eventually(async () => (await countUnanswered(join(restored, 'tenants'))) === 0, { timeoutMs: 240_000 });
    expect(await findMissing(restored, before)).toEqual([]);
    const [first] = keys;
    const sessions = await fetch(`${second.url}/api/sessions`, { headers: { 'X-API-Key': first?.keys.admin ?? '' } });
    expect(z.array(z.unknown()).parse(await sessions.json())).toHaveLength(2);
  }, 600_000);
});
