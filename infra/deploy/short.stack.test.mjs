// docker-compose.yml in a real engine, in every whole run: what breaks first when images, networks, the balancer or
// the order of a redeploy do not fit. `npm test -- deploy` has the same at length.
import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { run, until } from '../start/commands.mjs';
import { compose, listContainers } from './compose.mjs';
import { askOnce, keepStreams, openStreams, Probe } from './load.mjs';
import { redeploy, rolledServices } from './redeploy.mjs';
import { Stack } from './stack.mjs';

const START_TIMEOUT_MS = 40 * 60_000;
const TEST_TIMEOUT_MS = 15 * 60_000;
const INDEX_TIMEOUT_MS = 60_000;
const STREAMS = 20;
const REPLIES = 10;

const startedMs = Date.now();
const report = (text) => process.stderr.write(`stack ${((Date.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);

const stack = new Stack({ sandbox: true });
let keys;
let asked;

beforeAll(async () => {
  await stack.start(report);
  ({ keys } = JSON.parse(await stack.concierge('tenant', 'create', 'acme', '--json')));
  asked = { url: stack.url, apiKey: keys.cs };
}, START_TIMEOUT_MS);

afterAll(async () => {
  await stack.stop();
  report('everything is removed');
}, TEST_TIMEOUT_MS);

/** Turns whose message has this in it, as the service keeps them. */
async function listTurns(marker) {
  const answer = await fetch(`${stack.url}/api/turns?limit=100`, { headers: { 'X-API-Key': keys.admin } });
  return answer.ok ? (await answer.json()).filter(({ input }) => input?.includes(marker)) : [];
}

/** Files of this name in the tenants' folders, wherever a workspace is. */
const written = (name) => globSync(stack.dataPath('**', name));

describe('the stack with two of each service', () => {
  it('passes a turn through the balancer, from the port of the console, too', async () => {
    const { ended } = openStreams(asked, { name: 'first', count: 1, words: 5, delayMs: 10 });
    expect(await ended).toEqual(['done']);
    expect((await fetch(`${stack.consoleUrl}/livez`)).status).toBe(200);
  });

  it(
    'loses and doubles no word when a gateway is killed under streams and replies in one piece',
    async () => {
      const [victim] = await listContainers('gateway');
      const reply = { words: 40, delayMs: 250 };
      const replies = Array.from({ length: REPLIES }, async (_, index) => askOnce(asked, { marker: `killed-reply-${index}`, ...reply }));
      const { begun, ended } = openStreams(asked, { name: 'killed-stream', count: STREAMS, ...reply });
      await begun;
      await stack.kill(victim);
      expect([...(await ended), ...(await Promise.all(replies))].filter((end) => end !== 'done')).toEqual([]);
      // None was accepted twice, and each start asked the model once. A turn has more than one start only where its
      // worker stood still for longer than its lease, as on a machine that has too much to do.
      for (const [name, count] of Object.entries({ 'killed-stream': STREAMS, 'killed-reply': REPLIES })) {
        // The end of a turn waits for the index for two seconds, and no longer.
        let turns = [];
        const areThere = async () => {
          turns = await listTurns(name);
          return turns.length >= count;
        };
        await until(areThere, { timeoutMs: INDEX_TIMEOUT_MS, everyMs: 250 });
        expect([name, turns.length]).toEqual([name, count]);
        const starts = turns.reduce((sum, { attempts }) => sum + attempts, 0);
        expect(stack.modelCalls(name)).toBeGreaterThanOrEqual(count);
        expect(stack.modelCalls(name)).toBeLessThanOrEqual(starts);
      }
      await stack.startAgain(victim);
      report('a gateway was killed');
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'runs a command that was cut off with its workers not again, and ends the turn',
    async () => {
      const command = 'echo begun >> begun-once.txt; sleep 600';
      const message = `[[tools:bash ${JSON.stringify({ command, timeoutMs: 600_000 })}]] [[say:went on]]`;
      const answer = fetch(`${stack.url}/api/admin`, {
        method: 'POST',
        headers: { 'X-API-Key': keys.admin, 'Content-Type': 'application/json', Accept: 'application/json' },
        body: JSON.stringify({ message }),
      });
      expect(await until(async () => written('begun-once.txt').length === 1, { timeoutMs: TEST_TIMEOUT_MS / 3, everyMs: 250 })).toBe(true);
      const victims = await listContainers('worker');
      for (const victim of victims) await stack.kill(victim);
      await stack.startAgain(...victims);
      const { reply, finishReason, toolCalls } = await (await answer).json();
      expect({ reply, finishReason, calls: toolCalls.map(({ name, isError }) => [name, isError]) }).toEqual({
        reply: 'went on',
        finishReason: 'stop',
        calls: [['bash', true]],
      });
      expect(readFileSync(written('begun-once.txt')[0], 'utf8')).toBe('begun\n');
      report('workers were killed in the middle of a command');
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'fails no request and cuts no text while every container is replaced',
    async () => {
      const before = new Set((await stack.containers()).map(({ Id }) => Id));
      const probe = new Probe(asked);
      const { begun, stop } = keepStreams(asked, { name: 'roll', count: STREAMS, words: 40, delayMs: 250 });
      await begun;
      await redeploy({ services: rolledServices, all: true, onStep: report });
      const ends = await stop();
      expect(ends.filter((end) => end !== 'done')).toEqual([]);
      const count = await probe.stop();
      expect(probe.failures).toEqual([]);
      report(`${count} requests and ${ends.length} streams, none failed`);
      const after = await stack.containers();
      const kept = after.filter(({ Id, Config }) => rolledServices.includes(Config.Labels['com.docker.compose.service']) && before.has(Id));
      expect(kept.map(({ Name }) => Name)).toEqual([]);
      expect(after.length).toBe(before.size);
    },
    TEST_TIMEOUT_MS,
  );

  it(
    'leaves nothing behind when it is taken down',
    async () => {
      await compose(['stop', ...rolledServices]);
      const ended = (await Promise.all(rolledServices.map(async (service) => listContainers(service)))).flat();
      expect(ended.map(({ Name, State }) => [Name, State.ExitCode])).toEqual(ended.map(({ Name }) => [Name, 0]));
      await compose(['--profile', '*', 'down', '--volumes', '--timeout', '20']);
      const label = `label=com.docker.compose.project=${process.env.COMPOSE_PROJECT_NAME}`;
      for (const kind of [
        ['ps', '--all'],
        ['volume', 'ls'],
        ['network', 'ls'],
      ]) {
        const { stdout } = await run('docker', [...kind, '--quiet', '--filter', label]);
        expect([kind, stdout]).toEqual([kind, '']);
      }
    },
    TEST_TIMEOUT_MS,
  );
});
