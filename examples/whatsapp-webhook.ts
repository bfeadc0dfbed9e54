// Connects WhatsApp and delivers a customer's message, signed as Meta signs it: what happens when a customer writes to
// your number.
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { ConciergeClient } from '@concierge/client';

const { CONCIERGE_URL: baseUrl = 'http://localhost:8000', CONCIERGE_KEY: apiKey } = process.env;
/** The credentials of your app at Meta; these are made up. */
const settings = {
  phoneNumberId: process.env['WHATSAPP_PHONE_NUMBER_ID'] ?? '106540352242922',
  accessToken: process.env['WHATSAPP_ACCESS_TOKEN'] ?? 'example-access-token',
  verifyToken: process.env['WHATSAPP_VERIFY_TOKEN'] ?? 'example-verify-token',
  appSecret: process.env['WHATSAPP_APP_SECRET'] ?? 'example-app-secret',
};
const CUSTOMER = '491510000001';
const concierge = new ConciergeClient({ baseUrl, apiKey });

async function get<Answer>(path: string): Promise<Answer> {
  return JSON.parse(await (await concierge.request(path)).text());
}

const headers = { 'Content-Type': 'application/json' };
await concierge.request('/api/channels/whatsapp', { method: 'PUT', headers, body: JSON.stringify(settings) });
const { id: tenant } = await get<{ id: string }>('/api/tenant');

const id = `wamid.${randomUUID()}`;
const timestamp = String(Math.floor(Date.now() / 1000));
const value = {
  messaging_product: 'whatsapp',
  metadata: { display_phone_number: '15550783881', phone_number_id: settings.phoneNumberId },
  contacts: [{ profile: { name: 'Ann' }, wa_id: CUSTOMER }],
  messages: [{ from: CUSTOMER, id, timestamp, type: 'text', text: { body: 'Hello! When are you open?' } }],
};
const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes: [{ value, field: 'messages' }] }] });
// Over the bytes that are sent, with the app's secret.
const signature = createHmac('sha256', settings.appSecret).update(body).digest('hex');
const before = new Date().toISOString();
const answer = await fetch(`${baseUrl}/webhook/whatsapp/${tenant}`, {
  method: 'POST',
  headers: { ...headers, 'X-Hub-Signature-256': `sha256=${signature}` },
  body,
});
console.log(`The webhook was answered with ${String(answer.status)}: the message is accepted.`);

/** The message was accepted as a new turn; a provider's id leads to it only once. */
async function findTurn(): Promise<string> {
  for (let look = 0; look < 100; look += 1) {
    const turns = await get<{ id: string; channel: string; acceptedAt: string }[]>('/api/turns?limit=10');
    const turn = turns.find(({ channel, acceptedAt }) => channel === 'channel_a' && acceptedAt >= before);
    if (turn !== undefined) return turn.id;
    await wait(200);
  }
  throw new Error('no turn was made of the message');
}

for await (const event of concierge.followTurn(await findTurn())) {
  if (event.type === 'text_delta') process.stdout.write(event.data.delta);
}
process.stdout.write('\n');
