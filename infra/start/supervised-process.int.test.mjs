import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SupervisedProcess } from './supervised-process.mjs';

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe('a supervised process', () => {
  let folder;
  let started;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-supervised-'));
    started = [];
  });
  afterEach(async () => {
    for (const child of started) await child.stop(0);
    rmSync(folder, { recursive: true, force: true });
  });

  /** A Node process that appends its pid to a file, then runs `code`. */
  const supervise = (code) => {
    const file = join(folder, 'pids');
    const script = `require('node:fs').appendFileSync(${JSON.stringify(file)}, process.pid + '\\n'); ${code}`;
    const child = new SupervisedProcess({
      name: 'test',
      command: process.execPath,
      args: ['-e', script],
      env: { PATH: process.env.PATH },
      muted: true,
      firstPauseMs: 10,
    });
    started.push(child);
    child.start();
    return { child, pids: () => readFileSync(file, 'utf8').trim().split('\n').map(Number) };
  };

  it('is ready when it reports it', async () => {
    const { child } = supervise('process.send({ ready: true }); setInterval(() => {}, 1000);');
    expect(child.isReady).toBe(false);
    await eventually(() => child.isReady);
  });

  it('comes back after it was killed', async () => {
    const { child, pids } = supervise('process.send({ ready: true }); setInterval(() => {}, 1000);');
    await eventually(() => child.isReady);
    process.kill(pids()[0], 'SIGKILL');
    await eventually(() => pids().length === 2 && child.isReady);
    expect(isAlive(pids()[1])).toBe(true);
  });

  it('is left alone after it ended six times in a row', async () => {
    const { child, pids } = supervise('process.exit(3);');
    await eventually(() => child.state === 'failed');
    expect(pids()).toHaveLength(6);
    expect(child.isFailing).toBe(true);
  });

  it('ends by itself on SIGTERM', async () => {
    const { child, pids } = supervise(
      'process.on("SIGTERM", () => process.exit(0)); process.send({ ready: true }); setInterval(() => {}, 1000);',
    );
    await eventually(() => child.isReady);
    expect(await child.stop(60_000)).toBe(true);
    expect(isAlive(pids()[0])).toBe(false);
    expect(child.state).toBe('stopped');
  });

  it('is ended when it does not go within its grace', async () => {
    const { child, pids } = supervise('process.on("SIGTERM", () => {}); process.send({ ready: true }); setInterval(() => {}, 1000);');
    await eventually(() => child.isReady);
    expect(await child.stop(50)).toBe(false);
    expect(isAlive(pids()[0])).toBe(false);
  });
});
