import type { SessionPut } from '@concierge/index';
import { percentile, type Bench } from '../bench.ts';
import { absoluteRow, ratioRow, type Row } from '../row.ts';

const SESSIONS = 100_000;
const PER_TRANSACTION = 2000;
const PAGE = 25;
const REQUESTS = 300;

/** The newest 25 of 100,000 sessions, asked over HTTP one request at a time; the index is filled directly. */
export async function measureListing(bench: Bench): Promise<Row[]> {
  const few = await timeListing(bench, 'bench-few', PAGE);
  const many = await timeListing(bench, 'bench-many', SESSIONS);
  const measure = `listing ${String(PAGE)} of ${SESSIONS.toLocaleString('en')} sessions`;
  return [
    absoluteRow({ measure: `${measure}, p50 over HTTP`, unit: 'ms', product: percentile(many, 0.5) }, { atMost: 5 }),
    ratioRow(
      { measure, unit: 'ms', product: percentile(many, 0.5) },
      { name: `of ${String(PAGE)}`, value: percentile(few, 0.5) },
      { atMost: 1.5 },
    ),
  ];
}

async function timeListing({ product }: Bench, tenantId: string, sessions: number): Promise<number[]> {
  const { read } = await product.system.createTenant(tenantId);
  // The first look builds the index from the files, of which there are none; what is put after it stays.
  await list(product.system.url, read);
  const { index } = await product.system.scope(tenantId);
  for (let from = 0; from < sessions; from += PER_TRANSACTION) {
    await index.putSessions(Array.from({ length: Math.min(PER_TRANSACTION, sessions - from) }, (_, number) => buildPut(from + number)));
  }
  const times: number[] = [];
  for (let request = 0; request < REQUESTS; request += 1) {
    const startedMs = performance.now();
    const answer = await list(product.system.url, read);
    times.push(performance.now() - startedMs);
    if (!answer.includes('"A conversation"')) throw new Error(`the list is ${answer.slice(0, 200)}`);
  }
  return times.slice(REQUESTS / 5).toSorted((one, other) => one - other);
}

async function list(url: string, key: string): Promise<string> {
  const answer = await fetch(`${url}/api/sessions?limit=${String(PAGE)}`, { headers: { 'x-api-key': key } });
  return answer.text();
}

function buildPut(number: number): SessionPut {
  const at = new Date(Date.now() - number * 1000).toISOString();
  const id = number.toString(16).padStart(32, '0');
  return {
    session: {
      id,
      agent: 'cs',
      channel: 'web',
      revision: 1,
      createdAt: at,
      updatedAt: at,
      title: 'A conversation',
      messageCount: 2,
      turns: [],
    },
  };
}
