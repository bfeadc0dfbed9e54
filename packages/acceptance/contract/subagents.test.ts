import { beforeEach, describe, expect } from '@jest/globals';
import { z } from 'zod';
import { ChatReply, limits, SessionListItem, TurnView, UsageReport } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise, untilListed, type Tenant } from './fixture.ts';

/**
 * The tightest that can be configured: if a waiting turn held a slot that its sub-turns need, everything would stop.
 */
const tight = { WORKER_CONCURRENCY: '1', TENANT_SHARE: '1', SHUTDOWN_GRACE_S: '1' };

let contract: ContractSystem;
let tenant: Tenant;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start({ env: tight }));
});
beforeEach(async () => {
  tenant = await contract.tenant();
});

/** A call of the tool, with directives for the sub-agents inside: what closes a directive is spelled as JSON may. */
function asks(input: object): string {
  return `subagents ${JSON.stringify({ action: 'run', ...input }).replaceAll(']]', String.raw`]\u005d`)}`;
}

async function ask(message: string): Promise<ChatReply> {
  const answer = await tenant.as('admin').ask('admin', { message });
  expect([answer.status, answer.text.slice(0, 300)]).toEqual([200, expect.any(String)]);
  return ChatReply.parse(answer.json());
}

/** Every turn of the tenant, oldest first. */
async function turns(): Promise<TurnView[]> {
  return z
    .array(TurnView)
    .parse((await tenant.as('read').get('/api/turns?limit=100')).json())
    .toReversed();
}

async function children(): Promise<TurnView[]> {
  return (await turns()).filter(({ origin }) => origin === 'subagent');
}

const Offered = z.object({ tools: z.array(z.object({ function: z.object({ name: z.string() }) })).default([]) });

function offeredTo(marker: string): string[] {
  const request = contract.model.requests.find(({ userText }) => userText.includes(marker));
  return Offered.parse(request?.raw).tools.map((tool) => tool.function.name);
}

function countModelCalls(marker: string): number {
  return contract.model.requests.filter(({ userText }) => userText.includes(marker)).length;
}

describe('sub-agents', () => {
  promise(
    ['SI/what-the-service-does/13', 'SI/tool-registry/1'],
    'work side by side and their answers come back, each counted once',
    async () => {
      const call = asks({ tasks: [{ task: 'part-a [[say:alpha]]' }, { task: 'part-b [[tools:list_files {}]] [[say:beta]]' }] });
      const reply = await ask(`parent-one [[tools:${call}]] [[say:both]]`);
      expect(reply).toMatchObject({ reply: 'both', toolCalls: [{ name: 'subagents', isError: false }] });
      const output = reply.toolCalls[0]?.output ?? '';
      expect(output).toMatch(/\[1 of 2\] done .*\nalpha\n\n\[2 of 2\] done .*\nbeta$/u);
      await untilListed(tenant, 3);
      const started = await children();
      expect(started).toMatchObject(Array.from({ length: 2 }, () => ({ parentTurnId: reply.turnId, agent: 'admin', status: 'done' })));
      for (const { id, contact_id: session } of started) expect(output).toContain(`(turn ${id}, session ${session})`);
      const usage = UsageReport.parse((await tenant.as('read').get('/api/usage')).json());
      expect(usage.total).toMatchObject({ turns: 3, calls: 5 });
      expect(contract.model.requests.find(({ userText }) => userText.includes('\n\npart-a'))?.userText).toContain(
        'Another agent asks for this',
      );
    },
  );

  promise(['C/4/1'], 'have sessions that are listed with their origin, apart from the owner’s own when asked', async () => {
    await ask(`parent-listed [[tools:${asks({ tasks: [{ task: 'part-listed [[say:alpha]]' }] })}]] [[say:done]]`);
    await untilListed(tenant, 2);
    const read = tenant.as('read');
    const origins = async (query: string): Promise<string[]> =>
      z
        .array(SessionListItem)
        .parse((await read.get(`/api/sessions${query}`)).json())
        .map(({ origin }) => origin);
    expect((await origins('')).toSorted()).toEqual(['subagent', 'user']);
    expect(await origins('?origin=user,channel')).toEqual(['user']);
    expect(await origins('?origin=subagent')).toEqual(['subagent']);
    for (const bad of ['', 'api', 'user,', 'user,me'])
      expect((await read.get(`/api/sessions?origin=${bad}`)).problem()).toMatchObject({ status: 400, errors: [{ path: 'origin' }] });
  });

  promise(['SI/what-the-service-does/13'], 'have fewer tools with every step down, and none that writes to contacts', async () => {
    const deepest = 'depth-2 [[tools:subagents {"action":"list"}]] [[say:bottom]]';
    const middle = `depth-1 [[tools:${asks({ task: deepest })}]] [[say:middle]]`;
    const reply = await ask(`depth-0 [[tools:${asks({ task: middle })}]] [[say:top]]`);
    expect(reply).toMatchObject({ reply: 'top', toolCalls: [{ isError: false, output: expect.stringContaining('middle') }] });
    const [top, below, bottom] = ['depth-0', 'depth-1 ', 'depth-2 '].map((marker) => {
      const own = contract.model.requests.findLast(({ userText }) => userText.includes(`\n\n${marker}`));
      return Offered.parse(own?.raw).tools.map((tool) => tool.function.name);
    });
    const silent = ['message', 'reply', 'handoff', 'channels', 'cron'];
    expect(top).toContain('subagents');
    expect(below).toEqual(top?.filter((name) => !silent.includes(name)));
    expect(bottom).toEqual(below?.filter((name) => name !== 'subagents'));
    const refused = contract.model.requests.findLast(({ userText, round }) => userText.includes('\n\ndepth-2 ') && round === 1);
    expect(JSON.stringify(refused?.raw)).toContain('There is no tool');
  });

  promise(
    ['SI/what-the-service-does/13'],
    'may be agents of the tenant’s own, by their own rules and never beyond the asking turn’s',
    async () => {
      const { files } = await contract.system.scope(tenant.tenantId);
      await files.writeText('agents/finder.md', '---\ndescription: Finds things\ntools: [read, bash, list_files]\n---\nfinder-part\n');
      await files.writeText('agents/guide.md', '---\ndescription: Shows around\npublic: true\n---\nguide-part\n');
      await files.writeText('agents/asker.md', '---\ndescription: Asks\ntools: [subagents, list_files, status]\n---\n');
      const listed = await ask('[[tools:subagents {"action":"list"}]] [[say:x]]');
      expect(listed.toolCalls[0]?.output).toContain('finder: Finds things\nguide: Shows around');
      const call = asks({
        tasks: [
          { task: 'to-finder [[say:found]]', agent: 'finder' },
          { task: 'to-guide [[say:shown]]', agent: 'guide' },
          { task: 'to-admin [[say:done]]', agent: 'admin' },
        ],
      });
      const answer = await tenant
        .as('admin')
        .request('/api/agents/asker', { body: { message: `[[tools:${call}]] [[say:asked]]` }, headers: { accept: 'application/json' } });
      expect(ChatReply.parse(answer.json()).toolCalls[0]?.output).toMatch(/found[^]*shown[^]*done/u);
      expect(offeredTo('\n\nto-finder')).toEqual(['list_files']);
      expect(offeredTo('\n\nto-guide')).toEqual(['status']);
      expect(offeredTo('\n\nto-admin').toSorted()).toEqual(['list_files', 'status', 'subagents']);
      expect(JSON.stringify(contract.model.requests.find(({ userText }) => userText.includes('\n\nto-finder'))?.raw)).toContain(
        'finder-part',
      );
    },
  );

  promise(
    ['SI/what-the-service-does/13', 'C/3-events/10'],
    'that cannot be asked, or failed, are something to read and not the end',
    async () => {
      const { files } = await contract.system.scope(tenant.tenantId);
      await files.writeText('agents/broken.md', '---\nname: x\n---\n');
      const calls = [
        asks({ task: 'x', agent: 'nobody' }),
        asks({ task: 'x', agent: 'broken' }),
        asks({}),
        asks({ task: 'x', tasks: [{ task: 'y' }] }),
      ];
      const reply = await ask(
        `[[tools:${calls.join('; ')}]] [[tools:${asks({ task: 'failing [[fail:400 x9]] [[say:never]]' })}]] [[say:fine]]`,
      );
      expect(reply.reply).toBe('fine');
      expect(reply.toolCalls.map(({ isError }) => isError)).toEqual([true, true, true, true, false]);
      expect(reply.toolCalls[0]?.output).toContain('There is no agent "nobody". There are: admin, cs');
      expect(reply.toolCalls[1]?.output).toContain('cannot be used');
      expect(reply.toolCalls[4]?.output).toMatch(/^\[1 of 1\] failed .*\nThe model provider/u);
      await untilListed(tenant, 2);
      expect((await children()).map(({ status }) => status)).toEqual(['failed']);
    },
  );

  promise(['SI/what-the-service-does/13'], 'are limited in number, per call and per turn', async () => {
    const many = (count: number, name: string): string =>
      asks({ tasks: Array.from({ length: count }, (_, index) => ({ task: `${name}${String(index)} [[say:ok]]` })) });
    const tooMany = many(limits.subagentsPerCallMax + 1, 'n');
    const most = many(limits.subagentsPerCallMax, 'm');
    const rounds = [tooMany, most, most, asks({ task: 'one more' })].map((call) => `[[tools:${call}]]`);
    const reply = await ask(`${rounds.join(' ')} [[say:enough]]`);
    expect(reply.toolCalls.map(({ isError }) => isError)).toEqual([true, false, false, true]);
    expect(reply.toolCalls[3]?.output).toContain(`At most ${String(limits.subagentsPerTurnMax)}`);
    await untilListed(tenant, 1 + limits.subagentsPerTurnMax);
    expect(await children()).toHaveLength(limits.subagentsPerTurnMax);
  });

  promise(['SI/what-the-service-does/13'], 'wait for no turn that waits for them, however many and however deep', async () => {
    const leaf = (name: string): object => ({ task: `${name} [[say:leaf]]` });
    const branch = (name: string): object => ({
      task: `${name} [[tools:${asks({ tasks: [leaf(`${name}a`), leaf(`${name}b`)] })}]] [[say:branch]]`,
    });
    const message = `[[tools:${asks({ tasks: [branch('p'), branch('q'), branch('r')] })}]] [[say:root]]`;
    const replies = await Promise.all(Array.from({ length: 4 }, async () => ask(message)));
    expect(replies.map(({ reply }) => reply)).toEqual(['root', 'root', 'root', 'root']);
    await untilListed(tenant, 40);
    const all = await turns();
    expect(all).toHaveLength(40);
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set(['done']));
  });

  promise(['SI/what-the-service-does/13'], 'are cancelled with the turn that waits for them, down to the last', async () => {
    const inner = `inner-wait [[tools:${asks({ task: 'innermost [[hang]]' })}]] [[say:never]]`;
    const asking = tenant
      .as('admin')
      .chat('admin', { message: `outer [[tools:${asks({ tasks: [{ task: inner }, { task: 'next [[hang]]' }] })}]]` });
    await eventually(() => countModelCalls('\n\ninnermost [[') === 1);
    const outer = (await turns()).find(({ origin }) => origin === 'api');
    expect((await tenant.as('admin').request(`/api/turns/${outer?.id ?? ''}/cancel`, { method: 'POST' })).status).toBe(202);
    expect((await asking).events().at(-1)?.data).toMatchObject({ finishReason: 'cancelled' });
    await untilListed(tenant, 4);
    expect((await turns()).every(({ status }) => status === 'cancelled')).toBe(true);
    expect(await children()).toHaveLength(3);
    expect(countModelCalls('\n\nnext [[')).toBe(0);
  });
});

describe('a turn that was interrupted while it waited for sub-agents', () => {
  const interruptions = {
    'by a killed worker': async () => {
      const [worker] = contract.system.workers;
      await worker?.kill();
      worker?.start();
    },
    'by a worker that stops': async () => {
      const [worker] = contract.system.workers;
      expect(await worker?.terminate()).toBe(0);
      worker?.start();
    },
    'by a Redis that lost everything': async () => {
      await contract.system.flushRedis();
    },
    'by both': async () => {
      const [worker] = contract.system.workers;
      await worker?.kill();
      await contract.system.flushRedis();
      worker?.start();
    },
  };
  for (const [how, interrupt] of Object.entries(interruptions)) {
    promise(['SI/what-the-service-does/13'], `${how} attaches to those it had started`, async () => {
      const name = `mid-${tenant.tenantId}`;
      const tasks = [{ task: `${name}-quick [[say:quick]]` }, { task: `${name}-slow [[wait:1500]] [[say:slow]]` }];
      const asking = ask(`${name} [[tools:${asks({ tasks })}]] [[say:together]]`);
      await eventually(() => countModelCalls(`\n\n${name}-slow`) === 1);
      await interrupt();
      const reply = await asking;
      expect(reply.reply).toBe('together');
      expect(reply.toolCalls).toMatchObject([{ isError: false, output: expect.stringMatching(/quick[^]*slow/u) }]);
      await untilListed(tenant, 3);
      expect(await children()).toMatchObject([{ status: 'done' }, { status: 'done' }]);
      expect(countModelCalls(`\n\n${name}-quick`)).toBe(1);
    });
  }

  promise(['SI/what-the-service-does/13'], 'and is cancelled then takes along what the first worker had started', async () => {
    const name = `orphan-${tenant.tenantId}`;
    const asking = tenant
      .as('admin')
      .chat('admin', { message: `${name} [[tools:${asks({ tasks: [{ task: `${name}-x [[hang]]` }, { task: `${name}-y [[hang]]` }] })}]]` });
    await eventually(() => countModelCalls(`\n\n${name}-x`) === 1);
    const [worker] = contract.system.workers;
    await worker?.kill();
    const parent = (await turns()).find(({ origin }) => origin === 'api');
    expect((await tenant.as('admin').request(`/api/turns/${parent?.id ?? ''}/cancel`, { method: 'POST' })).status).toBe(202);
    worker?.start();
    expect((await asking).events().at(-1)?.data).toMatchObject({ finishReason: 'cancelled' });
    await eventually(async () => (await turns()).every(({ status }) => status === 'cancelled'));
    expect(countModelCalls(`\n\n${name}-y`)).toBe(0);
  });
});
