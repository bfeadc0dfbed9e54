import { describe, expect, it } from '@jest/globals';
import { parseMessenger } from './parse.ts';

const settings = { pageId: '200', instagramId: '201', accessToken: 'token', verifyToken: 'verify', appSecret: 'secret' };
const said = { sender: { id: '9' }, timestamp: 1, message: { mid: 'm1', text: 'x' } };

describe('a webhook of Messenger', () => {
  it.each([
    ['page', '200'],
    ['instagram', '201'],
  ])('reports which of the two accounts a sender writes to: %s', (object, account) => {
    const body = { object, entry: [{ id: account, time: 1, messaging: [said] }] };
    const delivery = parseMessenger(Buffer.from(JSON.stringify(body)), settings);
    expect(delivery).toMatchObject({ items: [{ conversation: { id: '9', account } }] });
  });
});
