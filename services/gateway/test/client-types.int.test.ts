import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { routes, type Route } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestGateway } from './test-gateway.ts';

const run = promisify(execFile);
const generator = fileURLToPath(import.meta.resolve('../node_modules/.bin/openapi-typescript'));
const compiler = fileURLToPath(import.meta.resolve('../../../infra/node_modules/.bin/tsc'));
const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--noEmit', '--ignoreConfig'];
const place = ['--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,dom', '--types', ''];

/** What a client's author writes by hand: a call, its answer, and its failure. */
const client = `
import type { components, paths } from './api.d.ts';

/** Whether a type says what is in a value. */
type IsKnown<Type> = [Type] extends [never] ? false : 0 extends 1 & Type ? false : unknown extends Type ? false : true;

/** What an operation answers with this status. */
type Answer<Operation, Status extends number> = Operation extends { responses: Record<Status, { content: infer Content }> }
  ? Content extends { 'application/json': infer Json } ? Json : never
  : never;

type Asked = paths['/api/admin']['post']['requestBody']['content']['application/json'];
export const asked: Asked = { message: 'Is the shop open?' };
// @ts-expect-error -- a message is text
export const wrong: Asked = { message: 5 };

export function listProblems(agents: Answer<paths['/api/agents']['get'], 200>): string[] {
  return agents.flatMap(({ name, problem, problems = [] }) => [
    ...(problem === null ? [] : [name + ': ' + problem]),
    ...problems.map(({ code, params }) => code + JSON.stringify(params['field'] ?? '')),
  ]);
}

export function explain(problem: components['schemas']['Problem']): string {
  // @ts-expect-error -- a field that no problem has
  void problem.colour;
  return problem.code + ': ' + (problem.detail satisfies string);
}

export const isAnyCaught: IsKnown<any> = false;
export const isUnknownCaught: IsKnown<unknown> = false;
`;

/** A line for each answer of the interface with JSON in it, which does not compile where its type says nothing. */
function listAssertions(): string[] {
  return Object.values<Route>(routes).flatMap(({ id, method, path, answers }) =>
    Object.entries(answers)
      .filter(([, answer]) => answer.json !== undefined)
      .map(([status]) => `export const ${id}${status}: IsKnown<Answer<paths['${path}']['${method}'], ${status}>> = true;`),
  );
}

describe('types of a client, made from the interface’s own description', () => {
  let gateway: TestGateway;
  let folder: string;

  setUpOnce(async (stack) => {
    gateway = stack.use(await TestGateway.start({ opsToken: 'an-operators-token-of-these-tests' }));
    folder = await mkdtemp(join(tmpdir(), 'concierge-client-'));
    stack.defer(async () => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'openapi.json'), await (await gateway.ask(undefined, '/openapi.json')).text());
    await run(generator, [join(folder, 'openapi.json'), '-o', join(folder, 'api.d.ts')]);
  });

  /** What the compiler says; nothing where all is well. */
  async function compile(lines: readonly string[]): Promise<string> {
    await writeFile(join(folder, 'client.ts'), lines.join('\n'));
    const compiled = await run(compiler, [...strict, ...place, join(folder, 'client.ts')]).catch((error: unknown) => error);
    return typeof compiled === 'object' && compiled !== null && 'stdout' in compiled ? String(compiled.stdout) : String(compiled);
  }

  it('compile strictly in a client that is written against them, and say what every answer is', async () => {
    const assertions = listAssertions();
    expect(assertions.length).toBeGreaterThan(80);
    expect(await compile([client, ...assertions])).toBe('');
  });

  it('do not compile where an answer is not known', async () => {
    expect(await compile([client, 'export const nothing: IsKnown<unknown> = true;'])).toContain("Type 'true' is not assignable");
  });
});
