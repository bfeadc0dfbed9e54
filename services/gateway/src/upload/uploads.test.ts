import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, gate } from '@concierge/testing';
import express, { type Request } from 'express';
import { receiveFiles, sweepReceivedFiles } from './uploads.ts';

const head =
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n' +
  '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nthe beginning of a file';

let parent: string;
let clearing: AsyncDisposableStack;

beforeEach(async () => {
  clearing = new AsyncDisposableStack();
  parent = await mkdtemp(join(tmpdir(), 'receive-files-test-'));
  clearing.defer(async () => rm(parent, { recursive: true, force: true }));
});
afterEach(async () => clearing.disposeAsync());

interface Sent {
  readonly client: Socket;
  /** What became of the request. */
  readonly outcome: Promise<string>;
}

/** Sends the beginning of an upload to a server that does `first` before it receives the files. */
async function send(first: (request: Request) => Promise<void>): Promise<Sent> {
  const outcome = gate<string>();
  const app = express().post('/', (request, response) => {
    first(request)
      .then(async () => receiveFiles(request, response, parent))
      .then(
        () => outcome.open('received'),
        (error: unknown) => outcome.open(String(error)),
      );
  });
  const server = app.listen(0, '127.0.0.1');
  clearing.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  await once(server, 'listening');
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- a server on a port has an address
  const { port } = server.address() as AddressInfo;
  const client = connect(port, '127.0.0.1');
  clearing.defer(() => void client.destroy());
  client.write(head);
  return { client, outcome: outcome.opened };
}

describe('an upload whose client goes', () => {
  it('before its folder is there ends and leaves nothing', async () => {
    const arrived = gate();
    const { client, outcome } = await send(async (request) => {
      request.on('error', () => undefined);
      arrived.open();
      const { promise, resolve } = Promise.withResolvers<void>();
      request.socket.once('close', () => resolve());
      await promise;
    });
    await arrived.opened;
    client.destroy();
    expect(await outcome).toContain('AppError');
    expect(await readdir(parent)).toEqual([]);
  });

  it('in the middle of a file ends and leaves nothing', async () => {
    const { client, outcome } = await send(async () => Promise.resolve());
    await eventually(async () => {
      const [folder] = await readdir(parent);
      return folder !== undefined && (await readdir(join(parent, folder))).length === 1;
    });
    client.destroy();
    expect(await outcome).toContain('AppError');
    await eventually(async () => (await readdir(parent)).length === 0);
  });
});

it('folders of gateways that were killed are cleared away, those of others are not', async () => {
  for (const name of ['concierge-upload-old', 'concierge-upload-new', 'else']) await mkdir(join(parent, name));
  const longAgo = new Date(Date.now() - 2 * 3600_000);
  for (const name of ['concierge-upload-old', 'else']) await utimes(join(parent, name), longAgo, longAgo);
  await sweepReceivedFiles(parent);
  expect((await readdir(parent)).toSorted()).toEqual(['concierge-upload-new', 'else']);
});
