// The openai package against Concierge: its base URL, a key of the tenant, an agent's name as the model.
// `safety_identifier` (or `user`) keeps one conversation for each user.
import OpenAI from 'openai';

const { CONCIERGE_URL = 'http://localhost:8000', CONCIERGE_KEY: apiKey } = process.env;
const openai = new OpenAI({ baseURL: `${CONCIERGE_URL}/v1`, apiKey });

const stream = await openai.chat.completions.create({
  model: 'cs',
  safety_identifier: 'example-openai',
  messages: [{ role: 'user', content: 'Hello! Who are you?' }],
  stream: true,
});
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '');
process.stdout.write('\n');
