// The floors for webhooks: Express handlers that read the body and answer, the second once it has written the body
// down.
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { readWebhookFloorConfig } from '../config.ts';
import { SessionFile } from './pipeline-turn.ts';

const { folder } = readWebhookFloorConfig();
const app = express();
app.disable('x-powered-by');
app.use(express.raw({ type: () => true }));
app.post('/empty', (_request, response) => {
  response.end();
});
app.post('/kept/:tenant', async ({ params, body }, response) => {
  await new SessionFile(join(folder, params.tenant), randomUUID()).write([{ role: 'user', text: String(body) }]);
  response.end();
});
const server = app.listen(0, '127.0.0.1', () => {
  server.keepAliveTimeout = 120_000;
  const address = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on TCP
  process.send?.({ port: address.port });
});
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
