import { describe, expect, it } from '@jest/globals';
import type { InboundItem } from '../channel-adapter.ts';
import { parseWhatsApp, ContactBook } from './parse.ts';

const settings = { phoneNumberId: '100', accessToken: 'token', verifyToken: 'verify', appSecret: 'secret' };

function read(value: object): readonly InboundItem[] {
  const change = { field: 'messages', value: { metadata: { phone_number_id: '100' }, ...value } };
  const body = { object: 'whatsapp_business_account', entry: [{ id: '1', changes: [change] }] };
  const delivery = parseWhatsApp(Buffer.from(JSON.stringify(body)), settings);
  return delivery.kind === 'items' ? delivery.items : [];
}

describe('a webhook of WhatsApp', () => {
  it('does not answer its own number', () => {
    const metadata = { phone_number_id: '100', display_phone_number: '+1 555-078-3881' };
    const own = {
      metadata,
      messages: ['15550783881', '491'].map((from) => ({ from, id: from, timestamp: '1', type: 'text', text: { body: 'hello' } })),
    };
    expect(read(own)).toMatchObject([{ kind: 'ignored', reason: 'echo' }, { kind: 'message' }]);
  });

  it('gives our own reference back with a receipt', () => {
    const status = { id: 'w1', status: 'delivered', timestamp: '1', recipient_id: '491', biz_opaque_callback_data: 'm_1.0' };
    expect(read({ statuses: [status] })).toMatchObject([{ kind: 'receipt', messageId: 'w1', reference: 'm_1.0' }]);
  });
});

it('finds the one with any of the ids, the first of several', () => {
  const book = new ContactBook([{ wa_id: '491' }, { wa_id: '492', user_id: 'U2' }, { user_id: 'U1' }]);
  expect(book.findContact(['492', undefined])).toEqual({ wa_id: '492', user_id: 'U2' });
  expect(book.findContact(['491', 'U1'])).toEqual({ wa_id: '491' });
  expect(book.findContact(['493', 'U3'])).toBeUndefined();
});

it('takes the only one there is for a sender without an id', () => {
  expect(new ContactBook([{ wa_id: '491' }]).findContact([undefined])).toEqual({ wa_id: '491' });
  expect(new ContactBook([{ wa_id: '491' }, { wa_id: '492' }]).findContact([undefined])).toBeUndefined();
});

it('looks at each contact once, however many messages there are: a body may hold tens of thousands of both', () => {
  let looks = 0;
  const contacts = Array.from({ length: 100 }, (_, index) => ({
    get wa_id() {
      looks += 1;
      return String(index);
    },
  }));
  const book = new ContactBook(contacts);
  for (let message = 0; message < 100; message += 1) book.findContact([String(99 - message)]);
  expect(looks).toBe(100);
});
