import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from './bootstrap.mjs';
import { answerUsage } from './usage.mjs';

const scripts = Object.entries(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts);
const call = (script, ...args) =>
  spawnSync(process.execPath, [join(root, 'infra', `${script}.mjs`), ...args], { encoding: 'utf8', cwd: root });

describe('the commands of npm', () => {
  it.each(scripts)('%s says what it takes, and does nothing else', (name) => {
    const { status, stdout, stderr } = call(name, '--help');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: npm (?:start|test|run )/u);
  });

  it.each(scripts.filter(([name]) => name !== 'test'))('%s refuses a flag that it does not know in one line', (name) => {
    const { status, stdout, stderr } = call(name, '--sed', '7');
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/^[a-z]+: Unknown option '--sed'\. npm .* -- --help lists what it takes\.\n$/u);
  });

  it.each([
    ['bench', 'packages/acceptance/bench/main.ts'],
    ['chaos', 'packages/acceptance/chaos/main.ts'],
  ])('%s lists each flag that its program reads', (name, program) => {
    const flags = readFileSync(join(root, program), 'utf8').matchAll(/[ {]'?([a-z-]+)'?: \{ type: '(string|boolean)'/gu);
    const given = [...flags].flatMap(([, flag, type]) => (type === 'string' ? [`--${flag}`, '1'] : [`--${flag}`]));
    expect(given.length).toBeGreaterThan(2);
    expect(answerUsage(name, given)).toBeUndefined();
  });

  it('take what they took before', () => {
    for (const [name, ...args] of [
      ['test', 'unit', 'packages/turn', '--watch', '-t', 'a name'],
      ['bench', 'ui', '--runs', '3'],
      ['prove', 'deploy', '2'],
      ['redeploy', '--all', 'gateway', 'worker'],
      ['dev', '--inspect', 'worker:9300', '--inspect', 'cron'],
      ['images', '--sbom', 'out'],
      ['reading', '--files'],
    ])
      expect(answerUsage(name, args)).toBeUndefined();
  });
});
