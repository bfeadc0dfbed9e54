import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { findKind, watchedFolders } from './watch.mjs';

const TIMEOUT_MS = 240_000;

describe('the tests of a path', () => {
  it('have the kind that the path names', () => {
    expect(findKind('packages/turn/src/turn-streams.test.ts')).toBe('unit');
    expect(findKind('packages/turn/test/lanes.int.test.ts')).toBe('integration');
    expect(findKind('infra/start/redis.int.test.mjs')).toBe('integration');
    expect(findKind('packages/acceptance/contract/chat.test.ts')).toBe('contract');
    expect(findKind(undefined)).toBe('unit');
  });

  it('are made of their package and what it imports, for tests, too', () => {
    const folders = watchedFolders(root, 'packages/turn/src/turn-streams.test.ts');
    expect(folders).toEqual(expect.arrayContaining(['packages/turn', 'packages/contract', 'packages/testing']));
    expect(folders).not.toContain('services/gateway');
    expect(watchedFolders(root, 'packages/acceptance/contract')).toContain('services/gateway');
  });
});

describe('npm test -- --watch', () => {
  let folder;
  let child;
  let output;
  beforeEach(() => {
    mkdirSync(join(root, 'infra', '.watched'), { recursive: true });
    folder = mkdtempSync(join(root, 'infra', '.watched', 'test-'));
    output = '';
  });
  afterEach(async () => {
    if (child?.exitCode === null) {
      const ended = once(child, 'exit');
      child.kill('SIGINT');
      await ended;
    }
    rmSync(join(root, 'infra', '.watched'), { recursive: true, force: true });
  });

  it(
    'runs a test again when it has changed, without a terminal',
    async () => {
      const write = (expected) =>
        writeFileSync(
          join(folder, 'sum.test.mjs'),
          `import { expect, it } from '@jest/globals';\nit('adds', () => expect(1 + 1).toBe(${expected}));\n`,
        );
      write(3);
      child = spawn(process.execPath, ['infra/test.mjs', '--watch', 'infra/.watched'], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] });
      child.stdout.on('data', (chunk) => (output += chunk));
      const closings = () => output.match(/^\d+ passed, \d+ failed/gmu) ?? [];
      await eventually(() => closings().length === 1 && output.includes('Waiting for a change'), { timeoutMs: TIMEOUT_MS });
      write(2);
      await eventually(() => closings().length === 2, { timeoutMs: TIMEOUT_MS });
      expect(closings()).toEqual(['0 passed, 1 failed', '1 passed, 0 failed']);
    },
    TIMEOUT_MS * 2,
  );
});
