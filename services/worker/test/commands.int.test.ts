import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { OUTCOME_UNKNOWN } from '@concierge/agent';
import { limits } from '@concierge/contract';
import { canRunBubblewrap, canRunDocker, eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { bash, readOutcomes, tool, TestSystem, type Tenant } from './test-system.ts';

const sandboxes = [
  { kind: 'bubblewrap', within: canRunBubblewrap() ? describe : describe.skip },
  { kind: 'docker', within: canRunDocker() ? describe : describe.skip },
];

for (const { kind, within } of sandboxes)
  within(`commands of a turn, with ${kind}`, () => {
    let whole: TestSystem;
    let tenant: Tenant;

    setUpOnce(async (stack) => {
      whole = stack.use(await TestSystem.start({ env: { SANDBOX: kind } }));
      tenant = await whole.tenant();
    });

    it('work on the files that the file tools see, both ways', async () => {
      const [written, read, shown] = await tenant.calls(
        'admin',
        bash('mkdir -p notes && printf "one\\ntwo\\n" > notes/list.txt'),
        tool('read', { path: 'notes/list.txt' }),
        bash('wc -l < notes/list.txt'),
      );
      expect(written).toEqual({ isError: false, output: expect.stringContaining('Exit code 0') });
      expect(read?.output).toContain('two');
      expect(shown?.output).toMatch(/\n\n2$/u);
      const [, changed, again] = await tenant.calls(
        'admin',
        tool('write', { path: 'notes/own.txt', content: 'from the tool\n' }),
        bash('cat notes/own.txt && echo appended >> notes/own.txt'),
        tool('read', { path: 'notes/own.txt' }),
      );
      expect(changed?.output).toContain('from the tool');
      expect(again?.output).toContain('appended');
    });

    it('share one sandbox within a turn, and nothing with the next', async () => {
      const [, kept] = await tenant.calls('admin', bash('echo mine > /tmp/mark'), bash('cat /tmp/mark'));
      expect(kept?.output).toContain('mine');
      expect((await tenant.bash('cat /tmp/mark')).output).toContain('Exit code 1');
    });

    it('are ended when the workspace goes over its budget, and until it is below can remove and write nothing', async () => {
      const small = await whole.tenant();
      await small.scope.updateSettings({ limits: { workspaceBytes: 8_000_000 } });
      const fills = 'mkdir fill; n=0; while :; do n=$((n + 1)); head -c 500000 /dev/zero > "fill/$n"; done';
      const filled = await small.bash(fills);
      expect(filled).toEqual({
        isError: true,
        output: expect.stringMatching(/^Killed after [\d.]+ s, .*the workspace holds more than it may/u),
      });
      const refused = await small.bash('echo too much > more.txt; fallocate -l 1000 more.bin; echo removing; rm -r fill/1 && echo removed');
      expect(refused.output).toContain('this command could remove files and write nothing');
      expect(refused.output).toContain('removed');
      expect((await small.scope.files.stat('more.txt'))?.size ?? 0).toBe(0);
      expect((await small.scope.files.stat('more.bin'))?.size ?? 0).toBe(0);
      await small.bash('rm -r fill');
      expect((await small.bash('echo fits > more.txt; cat more.txt')).output).toMatch(/^Exit code 0 [^]*\n\nfits$/u);
    });

    it('cannot write while uploads alone are over the budget', async () => {
      const small = await whole.tenant();
      await small.scope.updateSettings({ limits: { workspaceBytes: 1_000_000 } });
      await small.scope.uploads.save({ name: 'a.txt', type: 'text/plain', bytes: Buffer.alloc(1_500_000, 'x') });
      const { output } = await small.bash('echo too much > more.txt');
      expect(output).toContain('(uploads are counted)');
      expect((await small.scope.files.stat('more.txt'))?.size ?? 0).toBe(0);
    });

    it('see nothing of what is the service’s own, and can only read what was attached', async () => {
      await tenant.scope.uploads.save({ name: 'a.txt', type: 'text/plain', bytes: Buffer.from('attached words') });
      const { output } = await tenant.bash(
        'ls -A sessions inbox keys channels contacts; cat tenant.json; echo "--"; find uploads -type f | xargs cat',
      );
      const [own = '', attached = ''] = output.split('--');
      expect(own).not.toMatch(/\.json\b(?!:)|plan|standard/u);
      expect(attached).toContain('attached words');
      expect((await tenant.bash('touch uploads/x')).output).toMatch(/Exit code 1[^]*Read-only/u);
    });

    it('see no byte of the settings and change none, also while they are being changed', async () => {
      const command = [
        'shopt -s nullglob; mkdir watch; touch watch/seen',
        'until [ -e watch/stop ]; do',
        '  for file in tenant.json tenant.last-good.json .tmp-* settings/* settings/.tmp-*; do',
        '    [ "$file" -ef tenant.last-good.json ] || { IFS= read -r -d "" text < "$file"; printf %s "$text" >> watch/seen; } 2>/dev/null',
        '    { echo \'{"plan":"standard","limits":{"requestsPerHour":99999}}\' > "$file"; } 2>/dev/null',
        '  done; rounds=$((rounds + 1)); [ "$rounds" = 100 ] && touch watch/warm; ls -A | grep -e "^[.]tmp-" >> watch/seen',
        'done; ls -A settings | wc -l; echo "rounds: $rounds"',
      ].join('\n');
      await tenant.scope.updateSettings({ limits: { requestsPerHour: 5000 }, timezone: 'UTC' });
      // Until all settings are changed, which takes a busy machine longer than a command has by default.
      const turn = await tenant.begin('admin', bash(command, { timeoutMs: 230_000 }));
      await eventually(async () => (await tenant.scope.files.stat('watch/warm')) !== undefined);
      for (let time = 1; time <= 200; time += 1) {
        await tenant.changeSettings({ name: `name ${'long '.repeat(time % 7)}${String(time)}` });
        expect(await tenant.scope.settings()).toMatchObject({ name: expect.stringMatching(new RegExp(`${String(time)}$`, 'u')) });
        expect(tenant.scope.settingsProblem()).toBeNull();
      }
      await tenant.scope.files.writeText('watch/stop', '');
      const [outcome] = readOutcomes(await turn.events());
      expect(outcome?.output).toMatch(/Exit code 0[^]*\n0\nrounds: \d{3,}$/u);
      expect((await tenant.scope.files.readText('watch/seen')).text).toBe('');
      const expected = { plan: 'standard', name: expect.stringMatching(/ 200$/u), timezone: 'UTC', limits: { requestsPerHour: 5000 } };
      expect(JSON.parse(await readFile(join(tenant.scope.root, 'tenant.json'), 'utf8'))).toEqual(expected);
      expect(await tenant.scope.settings()).toEqual(expected);
      expect((await readdir(join(tenant.scope.root, 'settings'))).toSorted()).toEqual([
        'audit',
        'incarnation',
        'last-good.json',
        'lock.db',
      ]);
    });

    it('take arguments as they are with exec, and standard input', async () => {
      const words = ['a b', '$HOME', '*', "it's", ''];
      const { output } = await tenant.call('admin', tool('exec', { program: 'printf', args: ['<%s>', ...words] }));
      expect(output).toContain("<a b><$HOME><*><it's><>");
      expect((await tenant.call('admin', tool('exec', { program: 'wc', args: ['-c'], stdin: '12345' }))).output).toMatch(/\n\n5$/u);
      expect((await tenant.call('admin', tool('exec', { program: 'no-such-program', args: [] }))).output).toMatch(
        /Exit code 127[^]*No such file/u,
      );
    });

    it('are killed when their time is over, with everything they had started', async () => {
      const [outcome, left] = await tenant.calls(
        'admin',
        // Its time begins before the sandbox is there, which a busy machine makes in some seconds.
        bash('(setsid sleep 4444 &) ; echo started; sleep 5555', { timeoutMs: 20_000 }),
        bash('ps ax -o args 2>/dev/null || cat /proc/[0-9]*/cmdline | tr "\\0" " "'),
      );
      expect(outcome).toEqual({ isError: true, output: expect.stringContaining('its time was over') });
      expect(outcome?.output).toContain('started');
      expect(left?.output).not.toMatch(/sleep (?:4444|5555)/u);
    });

    it('show the beginning and the end of a flood', async () => {
      const turn = await tenant.begin('admin', bash('echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo last'));
      const [outcome] = readOutcomes(await turn.events());
      expect(outcome).toEqual({ isError: false, output: expect.stringContaining('It printed 30000') });
      // By its id: the index may be behind the answer, and its newest session another one.
      const session = await tenant.scope.sessions.load(await turn.sessionId());
      const result = session?.messages.find(({ role }) => role === 'tool');
      expect(result?.role === 'tool' ? result.output : '').toMatch(/\n\nfirst\nx+[^]*bytes[^]*x+\nlast$/u);
      expect(Buffer.byteLength(result?.role === 'tool' ? result.output : '')).toBeLessThanOrEqual(limits.toolOutputModelMaxBytes);
    });

    it('run in the background, report output, are waited for and killed, and end with the turn', async () => {
      const [started, heard, killed, listed] = await tenant.calls(
        'admin',
        bash('echo up; until [ -e stop ]; do sleep 0.05; done', { background: true }),
        tool('process', { action: 'output', id: 'p1', waitMs: 60_000 }),
        tool('process', { action: 'kill', id: 'p1' }),
        tool('process', { action: 'list' }),
      );
      expect(started?.output).toContain('Started in the background as p1');
      expect(heard?.output).toMatch(/^p1: running for .*\n\nup/u);
      expect(killed?.output).toMatch(/^p1: killed after/u);
      expect(listed?.output).toMatch(/^p1: killed after .*: echo up;/u);
      await tenant.bash('while true; do date +%s%N > beat; sleep 0.05; done', { background: true });
      const beat = await tenant.bash('cat beat');
      expect((await tenant.bash('cat beat')).output.split('\n').at(-1)).toBe(beat.output.split('\n').at(-1));
    });

    it('report their output while they run, when they take longer', async () => {
      const turn = await tenant.begin('admin', bash('echo working; until [ -e go ]; do sleep 0.05; done; echo finished'));
      const progress = await turn.until(({ type }) => type === 'tool_call_progress');
      expect(progress.data).toEqual({ id: expect.any(String), name: 'bash', delta: 'working\n' });
      await tenant.scope.files.writeText('go', '');
      const events = await turn.events();
      const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
      expect(types).toEqual(['session', 'tool_call_start', 'tool_call_progress', 'tool_call_end', 'tool_result', 'text_delta', 'done']);
      expect(readOutcomes(events)[0]?.output).toMatch(/working\nfinished$/u);
      const quick = await (await tenant.begin('admin', bash('echo quick'))).events();
      // A busy machine may make it a long one.
      const durationMs = Number(quick.find(({ type }) => type === 'tool_call_end')?.data['durationMs']);
      expect(quick.some(({ type }) => type === 'tool_call_progress') && durationMs < limits.toolProgressAfterMs).toBe(false);
    });

    it('stop in the middle when the turn is cancelled', async () => {
      const turn = await tenant.begin('admin', bash('while true; do date +%s%N > alive; sleep 0.05; done'));
      await turn.until(({ type }) => type === 'tool_call_start');
      await eventually(async () => (await tenant.scope.files.readText('alive')).size > 0);
      await turn.cancel();
      const events = await turn.events();
      expect(events.at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
      expect(readOutcomes(events)).toEqual([{ isError: true, output: expect.stringContaining('stopped from outside') }]);
      const last = (await tenant.scope.files.readText('alive')).text;
      await tenant.bash('sleep 0.3');
      expect((await tenant.scope.files.readText('alive')).text).toBe(last);
    });

    it('call the agent’s tools in pipes and scripts, and each call is in the turn’s record', async () => {
      const command = [
        'set -e',
        'seq 3 | concierge write --path memory/three.md --content -',
        'for n in 1 2; do concierge write --path "memory/n$n.md" --content "number $n"; done',
        'concierge read --path memory/three.md | grep -c 2',
        'concierge read --path memory/none.md 2>/tmp/error && exit 9 || echo "read: $?"',
        'grep -c "^concierge read:" /tmp/error',
        'concierge write --json \'{"path":"memory/j.md","content":"from json"}\' --as-json | jq -r .isError 2>/dev/null || true',
        'concierge nope || echo "nope: $?"',
        'concierge --help | grep -c "^  bash "',
      ].join('\n');
      const turn = await tenant.begin('admin', bash(command));
      const [outcome] = readOutcomes(await turn.events());
      expect(outcome?.output).toContain('Exit code 0');
      expect(outcome?.output).toMatch(/read: 1\n1\n[^]*nope: 2\n1$/u);
      expect((await tenant.scope.files.readText('memory/three.md')).text).toBe('1\n2\n3\n');
      expect((await tenant.scope.files.readText('memory/n2.md')).text).toBe('number 2');
      expect((await tenant.scope.files.readText('memory/j.md')).text).toBe('from json');
      const tools = (await turn.steps()).filter((step) => step.kind === 'tool');
      expect(tools.map(({ name, within, isError }) => [name, within, isError])).toEqual([
        ['write', 'bash', false],
        ['write', 'bash', false],
        ['write', 'bash', false],
        ['read', 'bash', false],
        ['read', 'bash', true],
        ['write', 'bash', false],
        ['bash', undefined, false],
      ]);
    });

    it('may start commands themselves, through the dispatcher, in the same sandbox', async () => {
      const { output } = await tenant.bash(
        'echo outer > /tmp/x; concierge bash --command "cat /tmp/x; concierge status | head -n 1 | wc -l"',
      );
      expect(output).toMatch(/Exit code 0[^]*Exit code 0[^]*outer\n1$/u);
    });

    it('are not cs’s to run, nor is a dispatcher', async () => {
      for (const name of ['bash', 'exec', 'process']) {
        const outcome = await tenant.call('cs', tool(name, { command: 'id', program: 'id', args: [], action: 'list' }));
        expect(outcome).toEqual({ isError: true, output: expect.stringContaining(`There is no tool "${name}"`) });
      }
      const offered = whole.model.requests.at(-1)?.body.tools?.map((one) => one.function.name) ?? [];
      expect(offered).toContain('read');
      expect(offered).not.toEqual(expect.arrayContaining(['bash']));
    });
  });

for (const { kind, within } of sandboxes)
  within(`a worker that is killed while a command runs, with ${kind}`, () => {
    it('leaves nothing behind for long, and the command is not run again', async () => {
      await using whole = await TestSystem.start({ env: { SANDBOX: kind } });
      const tenant = await whole.tenant();
      const seconds = String(100_000 + Math.floor(Math.random() * 100_000));
      const command = `echo once >> runs; concierge write --path memory/n.md --content x; touch called; sleep ${seconds}`;
      const turn = await tenant.begin('admin', bash(command));
      await turn.until(({ type }) => type === 'tool_call_start');
      await eventually(async () => (await tenant.scope.files.stat('called')) !== undefined);
      const [worker] = whole.system.workers;
      const folders = join(whole.system.dataDir, 'run');
      const left = (await readdir(folders)).filter((name) => name.startsWith('w_'));
      expect(left).toHaveLength(1);
      await worker?.kill();
      worker?.start();
      const [outcome] = readOutcomes(await turn.events());
      expect(outcome).toEqual({
        isError: true,
        output: `${OUTCOME_UNKNOWN}\nIt had called these tools by then:\n- concierge write: done`,
      });
      expect((await turn.steps()).filter((step) => step.kind === 'tool').map(({ name, within }) => [name, within])).toEqual([
        ['write', 'bash'],
        ['bash', undefined],
      ]);
      expect((await tenant.scope.files.readText('runs')).text).toBe('once\n');
      // A worker is given up after half a minute without a word, and an engine that is busy takes its time.
      await eventually(async () => !(await isRunning(`sleep\0${seconds}`)), { timeoutMs: 120_000, everyMs: 250 });
      await eventually(async () => !(await readdir(folders)).some((name) => left.includes(name)), { timeoutMs: 120_000, everyMs: 250 });
    });
  });

for (const { kind, within } of sandboxes) {
  within(`a worker that is stopped while a command runs, with ${kind}`, () => {
    it('ends the command, exits cleanly, and the next worker knows what became of it', async () => {
      await using whole = await TestSystem.start({ env: { SANDBOX: kind, SHUTDOWN_GRACE_S: '0' } });
      const tenant = await whole.tenant();
      const turn = await tenant.begin('admin', bash('echo begun; touch begun; while true; do date +%s%N > alive; sleep 0.05; done'));
      await eventually(async () => (await tenant.scope.files.stat('alive')) !== undefined);
      const [worker] = whole.system.workers;
      expect(await worker?.terminate()).toBe(0);
      const last = (await tenant.scope.files.readText('alive')).text;
      expect((await readdir(join(whole.system.dataDir, 'run'))).filter((name) => name.startsWith('w_'))).toEqual([]);
      worker?.start();
      const [outcome] = readOutcomes(await turn.events());
      expect(outcome).toEqual({ isError: true, output: expect.stringMatching(/stopped from outside[^]*begun$/u) });
      expect((await tenant.scope.files.readText('alive')).text).toBe(last);
    });
  });
}

/** Is there a process on this machine, in whatever container, with such a command line? */
async function isRunning(words: string): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const lines = await Promise.all(pids.map(async (pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.some((line) => line.startsWith(words));
}

describe('a service without a sandbox', () => {
  it('reports it to the model, with what the operator has to do, and runs nothing', async () => {
    await using whole = await TestSystem.start({ env: { SANDBOX: 'off' } });
    const tenant = await whole.tenant();
    for (const call of [bash('touch made'), bash('touch made', { background: true }), tool('exec', { program: 'touch', args: ['made'] })]) {
      const outcome = await tenant.call('admin', call);
      expect(outcome).toEqual({
        isError: true,
        output: expect.stringContaining('no sandbox (switched off by SANDBOX=off). Only its operator'),
      });
    }
    await expect(tenant.scope.files.readText('made')).rejects.toMatchObject({ code: 'not_found' });
  });
});
