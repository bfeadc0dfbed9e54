import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { ModelFacts, type AcceptedTurn, ProvidersFile, toolsOfAgent, toolTokens } from '@concierge/contract';
import { resolveProviders, type ModelRequest } from '@concierge/model';
import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { TurnEnd } from '@concierge/turn';
import { call, say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { TurnMetrics } from '../metrics.ts';
import type { ChosenModel } from './prepare-turn.ts';
import { TurnRunner } from './turn-runner.ts';
import type { ReportedWarning } from './turn-warnings.ts';
import { allTools, ToolRegistry } from '@concierge/agent';
import { contextBudget, crowdedModels } from './turn-agent.ts';

const log = createLog({ service: 'test', level: 'silent' });
const MEGABYTE = 1_000_000;
let scope: TenantScope;
let warnings: ReportedWarning[];

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  warnings = [];
});

async function play(model: ChosenModel, accepted: Partial<AcceptedTurn> = {}): Promise<TurnEnd> {
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  const warn = (_run: unknown, warning: ReportedWarning): void => void warnings.push(warning);
  return new TurnRunner({ models: { forRef: () => model }, capabilityFactories: unconnected, metrics, warn, log }).runTurn(
    turnRun(scope, {}, accepted),
  );
}

async function put(name: string, text: string | Uint8Array): Promise<void> {
  await writeFile(join(scope.root, name), text);
}

/** How much of both is equal from their beginning on. */
function commonStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

/** What a provider reads of a request, in the order in which it is sent to a model. */
const toBytes = ({ tools, system, messages }: ModelRequest): string =>
  JSON.stringify(tools) + system + JSON.stringify(messages).slice(0, -1);

describe('context files', () => {
  it.each([
    ['MEMORY.md', 2],
    ['MEMORY.md', 5],
    ['SOUL.md', 3],
    ['HEARTBEAT.md', 3],
    ['BOOTSTRAP-all.md', 3],
  ])('%s of %i MB leaves a turn that is answered, in a prompt of bounded size', async (name, megabytes) => {
    await put(name, `The first line.\n${'and so on, for ever\n'.repeat((megabytes * MEGABYTE) / 20)}`);
    const model = new Script(say('Hello.'));
    expect((await play(model)).event.type).toBe('done');
    const [request] = model.requests;
    const sent = `${request?.system ?? ''}${JSON.stringify(request?.messages)}`;
    expect(sent.length).toBeLessThan(100_000);
    expect(sent).toContain('The first line.');
    expect(sent).toContain(
      `[Cut here: ${name} has ${String(megabytes * MEGABYTE + 16)} bytes, and its first 65536 stand here. Read on with`,
    );
    expect(warnings).toMatchObject([
      { code: 'context_cut', subject: name, message: expect.stringContaining(String(megabytes * MEGABYTE + 16)) },
    ]);
  });

  it('together take at most a quarter of a small window', async () => {
    for (const name of ['USER.md', 'MEMORY.md', 'HEARTBEAT.md', 'BOOTSTRAP.md']) await put(name, 'word '.repeat(12_000));
    class Small extends Script {
      override readonly facts = ModelFacts.parse({ contextWindow: 60_000, maxOutputTokens: 4000 });
    }
    const model = new Small(say('Hello.'));
    expect((await play(model)).event.type).toBe('done');
    // 15,000 tokens of about five characters, and what the service writes itself.
    expect(`${model.requests[0]?.system ?? ''}${JSON.stringify(model.requests[0]?.messages)}`.length).toBeLessThan(15_000 * 5 + 5000);
    expect(warnings.map(({ subject }) => subject)).toEqual(['USER.md', 'MEMORY.md', 'BOOTSTRAP.md', 'HEARTBEAT.md']);
  });

  it('that cannot be used are left out, and the owner is notified', async () => {
    await rm(join(scope.root, 'MEMORY.md'));
    await mkdir(join(scope.root, 'MEMORY.md'));
    await put('SOUL.md', Buffer.from([0xff, 0xfe, 0x00]));
    await put('TOOLS.md', 'closed');
    await chmod(join(scope.root, 'TOOLS.md'), 0o000);
    const model = new Script(say('Hello.'));
    expect((await play(model)).event.type).toBe('done');
    expect(warnings).toEqual(
      expect.arrayContaining([
        { code: 'context_unreadable', subject: 'SOUL.md', message: 'SOUL.md is not in the prompt: The file is not UTF-8 text.' },
        expect.objectContaining({ code: 'context_unreadable', subject: 'MEMORY.md' }),
      ]),
    );
  });

  it('leave a note of a contact out of another’s warning, and name whose it is', async () => {
    const anna = scope.memory.forContact('anna');
    for (let note = 0; note < 5; note += 1) await anna.write({ text: 'x'.repeat(19_000) });
    await play(new Script(say('Hello.')), { agent: 'cs', authority: 'cs', sender: 'anna' });
    expect(warnings).toMatchObject([{ code: 'context_cut', subject: 'MEMORY.md of a contact' }]);
  });
});

describe('what a note in MEMORY.md leaves of the last request', () => {
  it('is everything before the note: tools and the whole system prompt so far', async () => {
    await put('MEMORY.md', `# Memory\n${'- The owner likes short answers.\n'.repeat(20)}`);
    const sessionId = 'b'.repeat(32);
    const before = new Script(call('c1', 'memory_write', { text: 'The shop closes at six.' }), say('Noted.'));
    await play(before, { sessionId });
    const after = new Script(say('At six.'));
    await play(after, { sessionId, text: 'When do we close?' });
    const [last, next] = [before.requests.at(-1), after.requests[0]].map((request) => (request === undefined ? '' : toBytes(request)));
    const kept = commonStart(last ?? '', next ?? '');
    const ofSystem = JSON.stringify(before.requests[0]?.tools).length + (before.requests[0]?.system.length ?? 0);
    expect(kept).toBeGreaterThanOrEqual(ofSystem);
    expect(kept / (last?.length ?? 1)).toBeGreaterThan(0.95);
    expect(next).toContain('The shop closes at six.');
  });
});

describe('HEARTBEAT', () => {
  it('is in the prompt of every turn and in it once, until it changes', async () => {
    const sessionId = 'c'.repeat(32);
    const requests: string[] = [];
    for (const heartbeat of ['look after the inbox', 'look after the inbox', 'look after the oven', 'look after the oven', '']) {
      await put('HEARTBEAT.md', heartbeat);
      const model = new Script(say('Well.'));
      await play(model, { sessionId });
      requests.push(...model.requests.map(toBytes));
    }
    const count = (text: string, part: string): number => text.split(part).length - 1;
    expect(requests.map((sent) => count(sent, 'look after the inbox'))).toEqual([1, 1, 1, 1, 1]);
    expect(requests.map((sent) => count(sent, 'look after the oven'))).toEqual([0, 0, 1, 1, 1]);
    expect(requests.map((sent) => count(sent, 'HEARTBEAT is as it was shown last.'))).toEqual([0, 1, 1, 2, 2]);
    expect(requests.at(-1)).toContain('HEARTBEAT is empty now.');
    // What was sent before is sent again byte for byte.
    for (const [place, sent] of requests.slice(0, -1).entries()) expect(requests[place + 1]?.startsWith(sent)).toBe(true);
    expect(JSON.stringify(await scope.sessions.view(sessionId))).not.toContain('look after');
  });
});

describe('a window that tools and prompt nearly fill', () => {
  it('is a warning that names agent and model, and none where there is room', async () => {
    class Tiny extends Script {
      override readonly facts = ModelFacts.parse({ contextWindow: 8000, maxOutputTokens: 1000 });
    }
    expect((await play(new Tiny(say('Hello.')))).event.type).toBe('done');
    expect(warnings).toMatchObject([
      {
        code: 'window_small',
        subject: 'admin test/model',
        message: expect.stringMatching(/admin take about \d+ tokens, and test\/model has a window of 8000/u),
      },
    ]);
    await play(new Script(say('Hello.')));
    expect(warnings).toHaveLength(1);
  });
});

describe('what tools take of a prompt', () => {
  it.each(['admin', 'cs'] as const)('is known to the gateway, about, for agents of %s', (access) => {
    const tools = new ToolRegistry(allTools, access, undefined);
    const tokens = contextBudget(ModelFacts.parse({}), '', tools).overheadTokens();
    const about = toolTokens(access, toolsOfAgent(access, undefined).length);
    expect(Math.abs(about - tokens) / tokens).toBeLessThan(0.15);
  });
});

describe('models whose window the tools nearly fill', () => {
  it('are named at the start, and none that has room', () => {
    const models = { small: { contextWindow: 8000 }, large: { contextWindow: 128_000 } };
    const file = ProvidersFile.parse({
      default: 'p/small',
      fallbacks: ['p/large'],
      providers: { p: { baseUrl: 'http://127.0.0.1/v1', models } },
    });
    const [found, ...others] = crowdedModels(resolveProviders(file, () => undefined));
    expect(found).toMatchObject({ model: 'p/small', contextWindow: 8000 });
    expect(found?.toolTokens).toBeGreaterThan(3000);
    expect(others).toEqual([]);
  });
});
