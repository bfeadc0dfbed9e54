import { describe, expect, it } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { smallPdf } from '@concierge/testing';
import { PdfTexts } from './pdf-texts.ts';

const texts = new PdfTexts(createLog({ service: 'test', level: 'silent' }));

describe('the text of a PDF', () => {
  it('is what stands on its pages', async () => {
    expect(await texts.read(smallPdf('Dear Concierge'))).toBe('Dear Concierge');
  });

  it('is empty when it cannot be read', async () => {
    expect(await texts.read(Buffer.from('%PDF-1.7 and then nothing'))).toBe('');
  });

  it('is empty when nobody waits for it any longer, before or while it is read', async () => {
    expect(await texts.read(smallPdf('late'), AbortSignal.abort())).toBe('');
    const stop = new AbortController();
    const reading = texts.read(smallPdf('late'), stop.signal);
    stop.abort();
    expect(await reading).toBe('');
  });
});
