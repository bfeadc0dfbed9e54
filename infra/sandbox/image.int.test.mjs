import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { run } from '../start/commands.mjs';
import { IMAGE, stateOfImage } from './recipe.mjs';

const MAX_BYTES = 450e6;

const state = await stateOfImage(IMAGE);
const onImage = state === 'missing' ? describe.skip : describe;

/** A container as an agent's: nothing to reach, nothing to write but /tmp, a user that the image does not know. */
async function inImage(command) {
  const flags = ['--network', 'none', '--read-only', '--cap-drop', 'ALL', '--tmpfs', '/tmp', '--user', '4242:4242'];
  const { ok, stdout, stderr } = await run('docker', ['run', '--rm', ...flags, IMAGE, 'bash', '-c', command], { timeoutMs: 120_000 });
  return { ok, output: stdout.trim(), stderr };
}

onImage('the sandbox image', () => {
  it('is made by the recipe of this checkout', () => {
    expect(state).toBe('current');
  });

  it('has every package of the list', async () => {
    const wanted = readFileSync(new URL('packages.txt', import.meta.url), 'utf8')
      .replaceAll(/#.*/gu, '')
      .split(/\s+/u)
      .filter(Boolean);
    expect(wanted.length).toBeGreaterThan(20);
    const { output } = await inImage("dpkg-query --show --showformat '$" + '{Package} $' + "{db:Status-Status}\\n'");
    const installed = new Set(output.split('\n'));
    expect(wanted.filter((name) => !installed.has(`${name} installed`))).toEqual([]);
  });

  it('offers work on data, documents and pictures to a user it does not know', async () => {
    const script = `
      set -e
      cd /tmp
      python3 -c "import openpyxl, PIL, yaml; print('python')"
      echo '{"a": [1, 2]}' | jq '.a | add'
      sqlite3 :memory: 'select 40 + 2'
      convert -size 40x20 xc:white -font DejaVu-Sans -annotate +2+12 hi picture.png && file -b --mime-type picture.png
      git init -q work && git -C work status --short && echo repository
      printf 'one\\ntwo\\n' | rg --no-filename two
      printf 'a b\\n' | awk '{ print $2 }'
      pdftotext -v 2>&1 | head -n 1 | cut -d ' ' -f 1
      TZ=Europe/Berlin date -d @0 +%Z`;
    const { output, stderr } = await inImage(script);
    expect({ lines: output.split('\n'), stderr }).toEqual({
      lines: ['python', '3', '42', 'image/png', 'repository', 'two', 'b', 'pdftotext', 'CET'],
      stderr: '',
    });
  });

  it('has no file that changes the user of a process', async () => {
    const { ok, output } = await inImage('find / -xdev ! -type l -perm /6000 2>/dev/null; exit 0');
    expect({ ok, output }).toEqual({ ok: true, output: '' });
  });

  it('carries neither package indexes, caches, logs nor the name of a mirror', async () => {
    const { output } = await inImage('find /var/lib/apt/lists /var/cache/apt /var/log /etc/apt/sources.list* -type f 2>/dev/null; exit 0');
    expect(output).toBe('');
  });

  it('runs as an unprivileged user, in the workspace', async () => {
    const { stdout } = await run('docker', ['image', 'inspect', '--format', '{{.Config.User}} {{.Config.WorkingDir}} {{.Size}}', IMAGE]);
    const [user, folder, size] = stdout.trim().split(' ');
    expect({ user, folder }).toEqual({ user: 'agent', folder: '/workspace' });
    expect(Number(size)).toBeLessThan(MAX_BYTES);
  });
});
