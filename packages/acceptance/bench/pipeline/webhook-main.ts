// The floor for webhooks: an Express handler that reads the body and answers.
import type { AddressInfo } from 'node:net';
import express from 'express';

const app = express();
app.disable('x-powered-by');
app.use(express.raw({ type: () => true }));
app.post('/webhook', (_request, response) => {
  response.end();
});
const server = app.listen(0, '127.0.0.1', () => {
  server.keepAliveTimeout = 120_000;
  const address = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on TCP
  process.send?.({ port: address.port });
});
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
