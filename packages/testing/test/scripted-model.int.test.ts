import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { eventually, say, startScriptedModel, temporaryDirectory, type ScriptedModel } from '../src/index.ts';
import { setUpEach } from '../src/set-up.ts';

const Completion = z.object({
  choices: z.array(
    z.object({
      finish_reason: z.string(),
      message: z.object({
        content: z.string().nullable(),
        tool_calls: z.array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) })).optional(),
      }),
    }),
  ),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }),
});

const Started = z.object({ url: z.string() });
const LedgerLine = z.object({ event: z.enum(['start', 'end']), number: z.number(), userText: z.string(), aborted: z.boolean().optional() });

interface Spoken {
  readonly role: string;
  readonly content: string;
}

function post(url: string, messages: readonly Spoken[], stream = false): Promise<Response> {
  return fetch(`${url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', messages, stream }),
    signal: AbortSignal.timeout(120_000),
  });
}

async function reply(url: string, ...messages: readonly Spoken[]) {
  const { choices, usage } = Completion.parse(await (await post(url, messages)).json());
  return {
    text: choices[0]?.message.content,
    calls: choices[0]?.message.tool_calls?.map((call) => call.function),
    finish: choices[0]?.finish_reason,
    usage,
  };
}

const user = (content: string): Spoken => ({ role: 'user', content });
const assistant = (content: string): Spoken => ({ role: 'assistant', content });

describe('directives in the user text', () => {
  let model: ScriptedModel;
  setUpEach(async (stack) => {
    model = stack.use(await startScriptedModel());
  });

  it('are one reply each, by the round of the turn', async () => {
    const turn = user('x [[tools:read {"path":"a; b"}; status]] [[say:found it]] [[finish:length]] [[usage:100,20]]');
    expect(await reply(model.url, turn)).toMatchObject({
      finish: 'tool_calls',
      calls: [
        { name: 'read', arguments: '{"path":"a; b"}' },
        { name: 'status', arguments: '{}' },
      ],
    });
    expect(await reply(model.url, turn, assistant(''))).toMatchObject({
      text: 'found it',
      finish: 'length',
      usage: { prompt_tokens: 100, completion_tokens: 20 },
    });
    expect(await reply(model.url, turn, assistant(''), assistant(''))).toMatchObject({ text: 'ok', finish: 'stop' });
  });

  it('join with a plus', async () => {
    expect(await reply(model.url, user('[[say:looking]]+[[tools:status]]'))).toMatchObject({
      text: 'looking',
      calls: [{ name: 'status' }],
    });
  });

  it('fail so often first', async () => {
    const turn = user('[[fail:503 x2]] [[say:third]]');
    const statuses = [];
    for (let attempt = 0; attempt < 3; attempt += 1) statuses.push((await post(model.url, [turn])).status);
    expect(statuses).toEqual([503, 503, 200]);
    expect((await post(model.url, [user('[[fail:503 x2]] [[say:other]]')])).status).toBe(503);
  });

  it('cut and hang connections', async () => {
    await expect(post(model.url, [user('[[fail:cut]]')], true).then((response) => response.text())).rejects.toThrow('terminated');
    const hanging = new AbortController();
    const body = JSON.stringify({ model: 'm', stream: true, messages: [user('[[hang]]')] });
    const response = await fetch(`${model.url}/chat/completions`, { method: 'POST', body, signal: hanging.signal });
    expect(response.status).toBe(200);
    hanging.abort();
    expect(await eventually(() => model.requests.at(-1)?.aborted)).toBe(true);
  });

  it('that cannot be read are answered with 400', async () => {
    expect((await post(model.url, [user('[[sing:la]]')])).status).toBe(400);
  });

  it('apply after the queue and the matchers', async () => {
    model.enqueue([say('from the queue')]);
    model.when('[[', [say('from a matcher')]);
    const texts = [];
    for (let call = 0; call < 3; call += 1) texts.push((await reply(model.url, user('[[say:directed]]'))).text);
    expect(texts).toEqual(['from the queue', 'from a matcher', 'directed']);
  });
});

describe('the process', () => {
  let folder: string;
  let child: ChildProcess;
  setUpEach(async (stack) => {
    folder = stack.use(await temporaryDirectory()).path;
    stack.defer(() => {
      if (child.exitCode === null) child.kill('SIGKILL');
    });
  });

  it('prints where it listens, keeps a ledger, and ends with 0 on SIGTERM', async () => {
    const main = fileURLToPath(new URL('../src/model/scripted-model-main.ts', import.meta.url));
    const ledger = join(folder, 'ledger.jsonl');
    child = spawn(process.execPath, ['--conditions=@concierge/source', main, '--ledger', ledger, '--reply', 'a b', '--chunks', '2'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = child.stdout === null ? [] : await once(child.stdout, 'data');
    const { url } = Started.parse(JSON.parse(String(line)));
    expect((await reply(url, user('turn 1'))).text).toBe('a b');
    expect(await (await post(url, [user('turn 2')], true)).text()).toMatch(/"content":"a ?".*"content":" ?b".*\[DONE\]/su);
    child.kill('SIGTERM');
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
    const lines = (await readFile(ledger, 'utf8'))
      .trim()
      .split('\n')
      .map((text) => LedgerLine.parse(JSON.parse(text)));
    expect(lines.map(({ event, number, userText }) => `${event} ${String(number)} ${userText}`)).toEqual([
      'start 1 turn 1',
      'end 1 turn 1',
      'start 2 turn 2',
      'end 2 turn 2',
    ]);
    expect(lines.filter(({ event }) => event === 'end').every(({ aborted }) => aborted === false)).toBe(true);
  });
});
