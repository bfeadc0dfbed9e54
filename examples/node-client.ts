// Asks an agent and prints its words as they come. `@concierge/client` resumes broken connections by itself.
import { ConciergeClient } from '@concierge/client';

const { CONCIERGE_URL: baseUrl = 'http://localhost:8000', CONCIERGE_KEY: apiKey } = process.env;
const concierge = new ConciergeClient({ baseUrl, apiKey });

for await (const event of concierge.streamTurn('cs', { message: 'Hello! Who are you?', sender: 'example-node' })) {
  if (event.type === 'text_delta') process.stdout.write(event.data.delta);
  if (event.type === 'text_reset') process.stdout.write('\n[taken back]\n');
  if (event.type === 'error') throw new Error(`${event.data.code}: ${event.data.message}`);
}
process.stdout.write('\n');
