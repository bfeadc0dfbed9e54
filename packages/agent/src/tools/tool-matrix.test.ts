import { readFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { csToolNames, mayUseTool, toolNames } from '@concierge/contract';
import { z } from 'zod';
import { unusedContext } from '../fixtures/tool-fixture.ts';
import { allTools } from './all-tools.ts';
import type { ToolAccess } from './tool-access.ts';
import { defineTool, ToolRegistry, TurnTools, type Tool } from './tool.ts';

const contract = new URL('../../../../docs/spec/contract.md', import.meta.url);

/** One tool as the table of contract §6 has it. */
interface ContractTool {
  readonly name: string;
  readonly domain: string;
  readonly cs: 'full' | 'narrow' | 'never';
}

const signal = new AbortController().signal;
const tools = await contractTools();
const ran: string[] = [];

/** All 28 by name, whatever they do: what is tested is who gets to call them. */
const probes: readonly Tool[] = allTools.map(({ name, domain, cs }) =>
  defineTool({
    name,
    domain,
    cs,
    description: name,
    schema: z.looseObject({}),
    sideEffect: 'none',
    run: async () => {
      ran.push(name);
      return Promise.resolve('ran');
    },
  }),
);

function openTools(access: ToolAccess, allow?: readonly string[]): TurnTools {
  return new TurnTools({
    set: new ToolRegistry(probes, access, allow),
    contextFor: (one) => ({ ...unusedContext, access, ...one }),
    onFailure: () => undefined,
  });
}

async function call(box: TurnTools, name: string): Promise<{ output: string; isError: boolean }> {
  return box.call({ id: '1', name, arguments: '{}' }, signal);
}

/** How a model, or a user who steers it, might try to reach a tool all the same. */
function spellings(name: string): string[] {
  const capital = name.charAt(0).toUpperCase() + name.slice(1);
  const fullWidth = name.replaceAll(/[a-z]/gu, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) + 0xfe_e0));
  const cyrillic = name.replaceAll('a', 'а').replaceAll('e', 'е').replaceAll('o', 'о').replaceAll('c', 'с');
  const camel = name.replaceAll(/_(?<letter>[a-z])/gu, (_, letter: string) => letter.toUpperCase());
  return [
    name.toUpperCase(),
    capital,
    camel.charAt(0).toUpperCase() + camel.slice(1),
    ` ${name}`,
    `${name} `,
    `${name}\n`,
    `\t${name}`,
    `functions.${name}`,
    `functions/${name}`,
    `tools.${name}`,
    `default_api:${name}`,
    `admin.${name}`,
    `admin__${name}`,
    `mcp__admin__${name}`,
    `concierge ${name}`,
    `${name}()`,
    `${name}_1`,
    `${name}.run`,
    `_${name}`,
    `read,${name}`,
    `read\u0000${name}`,
    `${name}\u0000`,
    `${name}\u200b`,
    `\ufeff${name}`,
    `${name.slice(0, 1)}\u00ad${name.slice(1)}`,
    `"${name}"`,
    `['${name}']`,
    encodeURIComponent(` ${name}`),
    fullWidth,
    ...(cyrillic === name ? [] : [cyrillic]),
    name.replaceAll('_', '-') === name ? `${name}-` : name.replaceAll('_', '-'),
  ];
}

beforeEach(() => {
  ran.length = 0;
});

describe('the table of tools in the contract', () => {
  it('has 28 of them, each once', () => {
    expect(new Set(tools.map(({ name }) => name)).size).toBe(28);
    expect(tools).toHaveLength(28);
  });

  it('matches the policy, domain by domain, in the same order', () => {
    const policy = allTools.map(({ name, domain, cs }) => ({ name, domain, cs }));
    expect(policy).toEqual(tools);
    expect(tools.map(({ name }) => name)).toEqual(toolNames);
    expect(tools.filter(({ cs }) => cs !== 'never').map(({ name }) => name)).toEqual(csToolNames);
  });

  it('is what there is: every one of the 28 exists', () => {
    expect(allTools.map(({ name }) => name).toSorted()).toEqual(tools.map(({ name }) => name).toSorted());
  });

  it('is in the order in which models see what there is', () => {
    const order = allTools.map(({ name }) => tools.findIndex((tool) => tool.name === name));
    expect(order).toEqual([...new Set(order)].toSorted((left, right) => left - right));
  });
});

describe.each(tools)('$name', ({ name, cs }) => {
  it('is the admin’s, offered and called', async () => {
    expect(mayUseTool('admin', name)).toBe(true);
    const box = openTools('admin');
    expect(box.offered.map((tool) => tool.name)).toContain(name);
    expect(await call(box, name)).toEqual({ output: 'ran', isError: false });
  });

  it('is there for cs, or absent and refused when called by its name, as the table states', async () => {
    const box = openTools('cs');
    const isThere = cs !== 'never';
    expect(mayUseTool('cs', name)).toBe(isThere);
    expect(box.offered.map((tool) => tool.name).includes(name)).toBe(isThere);
    const outcome = await call(box, name);
    expect(outcome.isError).toBe(!isThere);
    expect(ran).toEqual(isThere ? [name] : []);
  });

  it('is not given to cs by an agent’s own list', async () => {
    const outcome = await call(openTools('cs', [name]), name);
    expect(outcome.isError).toBe(cs === 'never');
    expect(ran).toEqual(cs === 'never' ? [] : [name]);
  });

  it('is what it is called and nothing like it, for either agent', async () => {
    for (const access of ['admin', 'cs'] as const) {
      for (const spelling of spellings(name)) {
        const outcome = await call(openTools(access), spelling);
        expect([spelling, outcome]).toEqual([
          spelling,
          { isError: true, output: expect.stringContaining(`There is no tool "${spelling.toWellFormed()}"`) },
        ]);
      }
    }
    expect(ran).toEqual([]);
  });

  it('is left out by an agent’s own list that does not name it', async () => {
    const others = tools.map((tool) => tool.name).filter((other) => other !== name);
    for (const access of ['admin', 'cs'] as const) expect((await call(openTools(access, others), name)).isError).toBe(true);
    expect(ran).toEqual([]);
  });
});

describe('a tool that cs may not have', () => {
  const bash = probes.filter(({ name }) => name === 'bash');
  const lying = bash.map((tool): Tool => ({ ...tool, cs: 'full' }));
  const boxWith = (one: readonly Tool[]): TurnTools =>
    new TurnTools({
      set: new ToolRegistry(one, 'cs'),
      contextFor: (context) => ({ ...unusedContext, access: 'cs', ...context }),
      onFailure: () => undefined,
    });

  it('is kept out of the registry by its own definition', () => {
    expect(boxWith(bash).offered).toEqual([]);
  });

  it('is refused by the contract’s list where its definition allows it', async () => {
    expect(await call(boxWith(lying), 'bash')).toMatchObject({ isError: true, output: expect.stringContaining('There is no tool "bash"') });
    expect(ran).toEqual([]);
  });
});

describe('a tool that exists', () => {
  it.each(allTools.filter(({ cs }) => cs !== 'never'))('$name sends cs to no tool that it does not have', (tool) => {
    const others = tools.filter(({ cs, name }) => cs === 'never' && name.includes('_')).map(({ name }) => name);
    expect(others.filter((name) => tool.description('cs').includes(name))).toEqual([]);
  });

  it('is no property of an object by chance', async () => {
    for (const name of ['toString', 'constructor', '__proto__', 'hasOwnProperty', '']) {
      expect(await call(openTools('admin'), name)).toMatchObject({ isError: true });
    }
  });
});

/** The table itself: bold is the admin's alone, `*` is narrower for cs. */
async function contractTools(): Promise<ContractTool[]> {
  const text = await readFile(contract, 'utf8');
  const [, section = ''] = text.split(/^## 6\. Tools$/mu);
  const [table = ''] = section.split(/^## /mu);
  return table.split('\n').flatMap((line) => {
    const [, domain = '', tools = ''] = line.split('|').map((cell) => cell.trim());
    return tools.includes('`') ? listTools(domain, tools) : [];
  });
}

function listTools(domain: string, cell: string): ContractTool[] {
  const withoutArguments = cell.replaceAll(/\([^)]*\)/gu, '');
  return [...withoutArguments.matchAll(/(?<bold>\*\*)?`(?<name>[a-z_]+)`(?:\*\*)?(?<star>\\\*)?/gu)].map(({ groups }) => ({
    domain,
    name: groups?.['name'] ?? '',
    cs: groups?.['bold'] !== undefined ? 'never' : groups?.['star'] !== undefined ? 'narrow' : 'full',
  }));
}
