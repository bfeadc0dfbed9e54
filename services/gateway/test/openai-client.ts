import OpenAI, { type APIError } from 'openai';
import { routes, type AcceptedTurn } from '@concierge/contract';
import { sayItBack, type Script } from './scripted-turns.ts';
import type { TestGateway, TestTenant } from './test-gateway.ts';

export const hello = [{ role: 'user', content: 'hello there' }] as const;

/** OpenAI's own client, unchanged. */
export function openAiClient(gateway: Pick<TestGateway, 'url'>, apiKey: string, maxRetries = 0): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries });
}

/** A tenant with an agent for its owner, one for all keys, and one whose file cannot be used. */
export async function tenantWithAgents(gateway: TestGateway): Promise<TestTenant> {
  const tenant = await gateway.tenant();
  const { files } = tenant.scope;
  await files.writeText('agents/books.md', '---\ndescription: Keeps the books\n---\nKeep them.\n');
  await files.writeText('agents/guide.md', '---\ndescription: Shows around\npublic: true\n---\nShow around.\n');
  await files.writeText('agents/typo.md', '---\ndescription: x\ntool: [read]\n---\n');
  return tenant;
}

/** Echoes the message, and notes the turn. */
export function sayItBackTo(accepted: AcceptedTurn[]): Script {
  return async (run) => {
    accepted.push(run.turn);
    await sayItBack(run);
  };
}

/** What the client throws; it must throw. */
export async function failure(call: Promise<unknown>): Promise<APIError> {
  const thrown: unknown = await call.then(
    () => new Error('nothing was thrown'),
    (error: unknown) => error,
  );
  if (thrown instanceof OpenAI.APIError) return thrown;
  throw thrown instanceof Error ? thrown : new Error('no error was thrown', { cause: thrown });
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** A message of one file, as Chat Completions has it. */
export function withFile(file: object): { readonly messages: object[] } {
  return { messages: [{ role: 'user', content: [{ type: 'file', file }] }] };
}

/** Whether a turn is done, by its id. */
export async function isDone(gateway: TestGateway, key: string, turnId: string | undefined): Promise<boolean> {
  const turn = await gateway.ask(key, `/api/turns/${turnId ?? ''}`);
  return routes.getTurn.answers[200].json.parse(await turn.json()).status === 'done';
}
