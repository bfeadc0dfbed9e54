import { execFile } from 'node:child_process';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { LogSearch, System, temporaryDirectory } from '../src/index.ts';
import { sourceFlags } from '../src/service-process.ts';

const apiKey = `ck_live_${'a1b2c3d4'.repeat(6)}`;
const entries = [
  { apiKey: 'sk-planted-key-of-a-provider' },
  { headers: { authorization: 'Bearer planted-token-of-a-channel' } },
  { url: `/x?${apiKey}` },
];

async function printEntries(redacts: boolean): Promise<string> {
  const main = fileURLToPath(new URL('entries-main.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [...sourceFlags, main, JSON.stringify({ entries, redacts })]);
  return stdout;
}

function newSearch(): LogSearch {
  const search = new LogSearch();
  search.plantSecrets({ MODEL_API_KEY: 'sk-planted-key-of-a-provider', SLACK_TOKEN: 'planted-token-of-a-channel', LOG_LEVEL: 'info' });
  search.plant('a message', 'where is my planted parcel');
  return search;
}

describe('a search of logs', () => {
  it('finds nothing in what services log, and all of it where redaction is off', async () => {
    await using folder = await temporaryDirectory();
    const [redacted, bare] = [join(folder.path, 'redacted.log'), join(folder.path, 'bare.log')];
    await writeFile(redacted, await printEntries(true));
    await writeFile(bare, await printEntries(false));
    expect(await newSearch().findHits([redacted, join(folder.path, 'none.log')])).toEqual([]);
    const hits = await newSearch().findHits([redacted, bare]);
    expect(hits.map(({ file, what }) => [file, what])).toEqual([
      ['bare.log', 'MODEL_API_KEY'],
      ['bare.log', 'SLACK_TOKEN'],
      ['bare.log', 'an API key'],
    ]);
    expect(JSON.stringify(hits)).not.toContain(apiKey);
  });

  it('finds texts of messages, those that tests plant and those that direct the scripted model, across pieces of a file', async () => {
    await using folder = await temporaryDirectory();
    const file = join(folder.path, 'long.log');
    const long = 'x'.repeat(1024 * 1024 - 10);
    await writeFile(file, `${long}where is my planted parcel${long}[[say:yes]]`);
    expect((await newSearch().findHits([file])).map(({ what }) => what)).toEqual(['a message', 'the text of a message']);
  });

  it('fails the test whose system has logged one of its secrets, after the system is closed', async () => {
    const system = await System.start({ modelUrl: 'http://127.0.0.1:1/v1' });
    const [gateway] = system.gateways;
    const { admin } = await system.createTenant('acme');
    await appendFile(join(system.logsFolder, 'gateway-0.log'), `{"key":"${admin}"}\n`);
    await expect(system[Symbol.asyncDispose]()).rejects.toThrow(/gateway-0\.log has an API key/u);
    expect(gateway?.alive).toBe(false);
  });
});
