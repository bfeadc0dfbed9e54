import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import type { Session, SessionMessage } from '@concierge/contract';
import { together, type Bench } from '../bench.ts';
import type { MeasuredLoad } from '../load/load-driver.ts';
import type { SenderIdentity } from '../load/load-spec.ts';
import { ratioRow, type Row } from '../row.ts';

const CONCURRENCY = 16;
const ROUNDS = 2;
const ROUND_MS = 3000;
const TENANT = 'bench-growth';

const small = { prefix: 'small', perSlot: 40, turnsEach: 4, messages: 6 } as const;
const grown = { prefix: 'grown', perSlot: 1, turnsEach: 1, messages: 5000 } as const;

/**
 * What a turn costs in a session of 5,000 messages, beside one of about 10. Files are written directly; the first turn
 * in each compacts.
 */
export async function measureSessionGrowth(bench: Bench): Promise<Row[]> {
  const { cs } = await bench.product.system.createTenant(TENANT);
  const scope = await bench.product.system.scope(TENANT);
  await seed(scope, small);
  await seed(scope, grown);
  const loads: { small: MeasuredLoad[]; grown: MeasuredLoad[] } = { small: [], grown: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    loads.small.push(await measureTurns(bench, small, cs));
    loads.grown.push(await measureTurns(bench, grown, cs));
  }
  const [baseline, measured] = [together(loads.small), together(loads.grown)];
  const name = 'at 10';
  const cpu = { measure: 'CPU per 1,000 turns at 5,000 messages in the session', unit: 's', product: measured.cpuPer1000 };
  const time = { measure: 'time per turn at 5,000 messages in the session', unit: 'ms', product: (CONCURRENCY / measured.rate) * 1000 };
  return [
    ratioRow(cpu, { name, value: baseline.cpuPer1000 }, { atMost: 1.3 }),
    ratioRow(time, { name, value: (CONCURRENCY / baseline.rate) * 1000 }, { atMost: 1.3 }),
  ];
}

async function measureTurns(bench: Bench, senders: SenderIdentity, key: string): Promise<MeasuredLoad> {
  const { prefix, perSlot, turnsEach } = senders;
  const load = {
    concurrency: CONCURRENCY,
    measureMs: ROUND_MS,
    warmUpTurns: CONCURRENCY * 3,
    apiKeys: [key],
    senders: { prefix, perSlot, turnsEach },
  };
  return bench.full(bench.product, load);
}

async function seed(scope: TenantScope, { prefix, perSlot, messages }: SenderIdentity & { readonly messages: number }): Promise<void> {
  for (let slot = 0; slot < CONCURRENCY; slot += 1) {
    for (let number = 0; number < perSlot; number += 1) {
      await scope.sessions.publish(buildSession(`${prefix}-${String(slot)}-${String(number)}`, messages));
    }
  }
}

function buildSession(sender: string, messages: number): Session {
  const at = new Date().toISOString();
  return {
    version: 1,
    id: deriveSessionId('cs', 'web', sender),
    agent: 'cs',
    channel: 'web',
    sender,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title: 'A long conversation',
    messageCount: messages,
    summary: null,
    messages: Array.from({ length: messages }, (_, number) => buildMessage(number, at)),
    turns: [],
    contextTokens: null,
  };
}

function buildMessage(number: number, at: string): SessionMessage {
  const turn = Math.floor(number / 2);
  const base = { id: `t_seed${String(turn)}.${String(number % 2)}`, turnId: `t_seed${String(turn)}`, at };
  if (number % 2 === 1)
    return {
      ...base,
      role: 'assistant',
      text: 'It left the warehouse yesterday and should be with you in two days.',
      model: 'test/scripted',
    };
  const text = 'What is the state of my order? It should have been here by now, I think.';
  return { ...base, role: 'user', text, sent: `<context>\nCurrent time: Friday\n</context>\n\n${text}` };
}
