import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { UploadRef } from '@concierge/contract';
import { openIndex } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { Tenants, type TenantScope } from '@concierge/tenant';
import { onePixelPng, smallPdf } from '@concierge/testing';
import { DocumentReader } from '@concierge/web';
import { storeUpload, UploadTexts } from '../src/index.ts';

const log = createLog({ service: 'test', level: 'silent' });
const never = new AbortController().signal;
const documents = new DocumentReader();
let clearing: AsyncDisposableStack;
let scope: TenantScope;
let read: number;
let texts: UploadTexts;

beforeEach(async () => {
  clearing = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'concierge-upload-test-'));
  clearing.defer(async () => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  const index = await openIndex({ databaseUrl: undefined, dataDir, log });
  clearing.defer(async () => index.close());
  scope = await new Tenants({ dataDir, index, keySecret: 'k'.repeat(40), secretsKey: 's'.repeat(40), log }).create('acme');
  read = 0;
  const counting: Pick<DocumentReader, 'read'> = {
    read: async (task, terms) => {
      read += 1;
      return documents.read(task, terms);
    },
  };
  texts = new UploadTexts({ documents: counting, log });
});
afterEach(async () => clearing.disposeAsync());

async function pdf(bytes: Uint8Array): Promise<UploadRef> {
  return storeUpload(scope, { name: 'a.pdf', type: 'application/pdf', bytes: Buffer.from(bytes) });
}

it('reads a PDF when its text is asked for, and no more than once', async () => {
  const upload = await pdf(smallPdf('Dear Concierge'));
  expect(await scope.uploads.text(upload.id)).toBeUndefined();
  expect(await texts.read(scope, upload, never)).toBe('Dear Concierge');
  expect(await scope.uploads.text(upload.id)).toBe('Dear Concierge');
  expect(await texts.read(scope, upload, never)).toBe('Dear Concierge');
  expect(read).toBe(1);
});

it('reports once and for all that a PDF cannot be read', async () => {
  const upload = await pdf(Buffer.from('%PDF-1.7 and then nothing'));
  expect(await texts.read(scope, upload, never)).toMatch(/No text could be read/u);
  expect(await texts.read(scope, upload, never)).toMatch(/No text could be read/u);
  expect(read).toBe(1);
});

it('leaves a PDF to a later question when there is no time for it now', async () => {
  const upload = await pdf(smallPdf('later'));
  expect(await texts.read(scope, upload, AbortSignal.abort())).toMatch(/has not been read/u);
  expect(await texts.read(scope, upload, never)).toBe('later');
});

it('reads no image and no text, whose words are kept with it', async () => {
  const image = await storeUpload(scope, { name: 'a.png', type: 'image/png', bytes: Buffer.from(onePixelPng) });
  const note = await storeUpload(scope, { name: 'a.txt', type: 'text/plain', bytes: Buffer.from('Grüße') });
  expect([await texts.read(scope, image, never), await texts.read(scope, note, never)]).toEqual([undefined, 'Grüße']);
  expect(read).toBe(0);
});
