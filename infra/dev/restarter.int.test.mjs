import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { eventually } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SupervisedProcess } from '../start/supervised-process.mjs';
import { Restarter } from './restarter.mjs';

const GRACE_MS = 10_000;

describe('the restarter', () => {
  let root;
  let services;
  let restarter;
  let changes;

  const write = (path, text) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const addPackage = (folder, name, needs = []) => {
    const dependencies = Object.fromEntries(needs.map((other) => [other, 'workspace:*']));
    write(`${folder}/package.json`, JSON.stringify({ name, dependencies }));
    write(`${folder}/src/index.txt`, 'first');
  };
  /** A service that notes what it read at its start, and lives until it is stopped. */
  const addService = (name, reads) => {
    const code = `
      const fs = require('node:fs');
      const text = fs.readFileSync(${JSON.stringify(join(root, reads))}, 'utf8');
      if (text === 'broken') process.exit(1);
      fs.appendFileSync(${JSON.stringify(join(root, `${name}.log`))}, text + '\\n');
      process.on('SIGTERM', () => process.exit(0));
      process.send({ ready: true });
      setInterval(() => {}, 1000);`;
    services[name] = new SupervisedProcess({
      name,
      command: process.execPath,
      args: ['-e', code],
      env: { PATH: process.env.PATH },
      muted: true,
      firstPauseMs: 10,
    });
  };
  const countStarts = (name) =>
    readFileSync(join(root, `${name}.log`), 'utf8')
      .trim()
      .split('\n');

  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'concierge-dev-'));
    services = {};
    changes = 0;
    addPackage('packages/base', '@x/base');
    addPackage('packages/middle', '@x/middle', ['@x/base']);
    addPackage('services/one', '@x/one', ['@x/middle']);
    addPackage('services/two', '@x/two');
    addService('one', 'packages/base/src/index.txt');
    addService('two', 'services/two/src/index.txt');
    for (const service of Object.values(services)) service.start();
    await eventually(() => Object.values(services).every((service) => service.isReady));
    restarter = new Restarter({ root, services, graceMs: GRACE_MS, onChange: () => (changes += 1) });
  });
  afterEach(async () => {
    await restarter.stop();
    for (const service of Object.values(services)) await service.stop(GRACE_MS);
    rmSync(root, { recursive: true, force: true });
  });

  it('restarts the services that import the changed package, directly or not, and no other', async () => {
    write('packages/base/src/index.txt', 'second');
    await eventually(() => countStarts('one').length === 2 && services.one.isReady);
    expect(countStarts('one')).toEqual(['first', 'second']);
    expect(countStarts('two')).toEqual(['first']);
  });

  it('restarts none for a test', async () => {
    write('packages/base/src/index.test.ts', '');
    write('packages/base/test/other.int.test.ts', '');
    await eventually(() => changes > 0);
    write('services/two/src/index.txt', 'second');
    await eventually(() => countStarts('two').length === 2);
    expect(countStarts('one')).toEqual(['first']);
  });

  it('leaves a service that cannot start to be mended, and brings it back when it is', async () => {
    write('packages/base/src/index.txt', 'broken');
    await eventually(() => services.one.state === 'failed');
    write('packages/base/src/index.txt', 'mended');
    await eventually(() => services.one.isReady);
    expect(countStarts('one')).toEqual(['first', 'mended']);
  });

  it('ends with the last of many changes', async () => {
    write('packages/base/src/index.txt', 'second');
    await eventually(() => countStarts('one').length === 2);
    for (const text of ['third', 'fourth', 'last']) write('packages/base/src/index.txt', text);
    await eventually(() => countStarts('one').at(-1) === 'last' && services.one.isReady);
    expect(services.one.state).toBe('running');
  });

  it('restarts nothing any more once it was stopped', async () => {
    await restarter.stop();
    write('packages/base/src/index.txt', 'late');
    await services.one.restart(GRACE_MS);
    await eventually(() => services.one.isReady);
    expect(countStarts('one')).toEqual(['first', 'late']);
  });
});
