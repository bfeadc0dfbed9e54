// A report every night at six in Berlin, made once however often this runs; then runs it now and prints its text.
import { setTimeout as wait } from 'node:timers/promises';
import { ConciergeClient, ReplyText } from '@concierge/client';

interface Run {
  readonly id: string;
  readonly outcome: string;
  readonly turn: { readonly id: string } | null;
}

const { CONCIERGE_URL: baseUrl = 'http://localhost:8000', CONCIERGE_KEY: apiKey } = process.env;
const concierge = new ConciergeClient({ baseUrl, apiKey });
const report = {
  name: 'nightly report',
  agent: 'admin',
  message: 'Write the report of the day: what customers asked, and what is still open.',
  schedule: { cron: '0 6 * * *', timezone: 'Europe/Berlin' },
  // Where it goes: null keeps it as a conversation; or { channel: 'telegram', to: '…' }, or { webhook: 'https://…' }.
  deliver: null,
};

async function call<Answer>(method: string, path: string, json?: object): Promise<Answer> {
  const body = json === undefined ? {} : { body: JSON.stringify(json), headers: { 'Content-Type': 'application/json' } };
  return JSON.parse(await (await concierge.request(path, { method, ...body })).text());
}

/** A run gets its turn when it begins, within seconds. */
async function readTurn(schedule: string, run: string): Promise<string> {
  for (let look = 0; look < 120; look += 1) {
    const runs = await call<Run[]>('GET', `/api/cron/${schedule}/runs`);
    const turn = runs.find(({ id }) => id === run)?.turn;
    if (turn != null) return turn.id;
    await wait(500);
  }
  throw new Error('the run has not begun');
}

const schedules = await call<{ id: string; name: string; nextRunAt: string | null }[]>('GET', '/api/cron');
const known = schedules.find(({ name }) => name === report.name);
const { id, nextRunAt } = known ?? (await call<{ id: string; nextRunAt: string | null }>('POST', '/api/cron', report));
console.log(`The next report is due at ${String(nextRunAt)}.`);

const run = await call<Run>('POST', `/api/cron/${id}/run`);
const reply = new ReplyText();
for await (const event of concierge.followTurn(await readTurn(id, run.id))) reply.add(event);
console.log(reply.text);
