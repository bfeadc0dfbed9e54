import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CommandLine } from './command-line.ts';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const preload = new URL('loaded-modules.ts', import.meta.url).href;

let concierge: CommandLine;
beforeEach(async () => (concierge = await CommandLine.over()));
afterEach(async () => await concierge[Symbol.asyncDispose]());

/** Addresses of all modules that a command loads before it ends well. */
async function listModules(...args: string[]): Promise<string> {
  const env = { DATA_DIR: concierge.dataDir, KEY_SECRET: 'a secret that is long enough for keys' };
  const flags = ['--conditions=@concierge/source', '--no-warnings', `--import=${preload}`];
  const child = spawn(process.execPath, [...flags, main, ...args], { env, stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
  const closed = once(child, 'close');
  const heard = child.stdio[3];
  const loaded = heard instanceof Readable ? await text(heard) : '';
  expect(await closed).toEqual([0, null]);
  return loaded;
}

const commandFiles = /\/cli\/src\/commands\/([\w-]+)\.ts/gu;
const filesIn = (loaded: string): (string | undefined)[] => [...loaded.matchAll(commandFiles)].map((match) => match[1]);

describe('a command', () => {
  it('loads itself, and neither the other commands nor what only those need', async () => {
    const loaded = await listModules('tenant', 'list');
    expect(filesIn(loaded)).toEqual(['tenant']);
    expect(loaded).toContain('/packages/tenant/src/index.ts');
    expect(loaded).not.toMatch(/\/node_modules\/(?:bullmq|ioredis|prom-client|tar|mdast-util-gfm)\/|\/packages\/(?:turn|model)\/src\//u);
  });

  it('does not load what sends test events when it lists events', async () => {
    await listModules('tenant', 'create', 'acme');
    expect(await listModules('event', 'list', 'acme')).not.toMatch(/\/node_modules\/bullmq\/|\/packages\/turn\/src\//u);
  });

  it('is not loaded for a listing', async () => {
    const loaded = await listModules('--help');
    expect(filesIn(loaded)).toEqual([]);
    expect(loaded).not.toContain('/packages/tenant/src/');
  });
});
