import { expect, it, describe } from '@jest/globals';
import type { TenantScope } from '@concierge/tenant';
import type { TurnReceipt } from '@concierge/turn';
import { GatewayMetrics } from '../metrics.ts';
import { MessageAcceptance, type UserMessage, requestHash, type AskedFor } from './message-acceptance.ts';

// eslint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else of the tenant is looked at
const scope = { settings: async () => Promise.resolve({ plan: 'standard' }) } as TenantScope;
const source = { scope, keyId: null, dedupeId: null };
const message: UserMessage = {
  agent: 'cs',
  authority: 'cs',
  channel: 'web',
  sender: null,
  contactId: null,
  text: 'hello',
  attachments: [],
  busy: 'queue',
};
const receipt: TurnReceipt = { turnId: 't1', sessionId: 's1', replayed: false };

it('refuses messages beyond its room, and has room again when one is through, well or not', async () => {
  const disks = [Promise.withResolvers<TurnReceipt>(), Promise.withResolvers<TurnReceipt>(), Promise.withResolvers<TurnReceipt>()];
  let begun = 0;
  const acceptance = new MessageAcceptance({
    turns: {
      accept: async () => {
        begun += 1;
        return disks[begun - 1]?.promise ?? receipt;
      },
      findAccepted: async () => Promise.resolve(undefined),
    },
    streamQuota: { refuseWhenFull: () => undefined },
    budgets: { refuseWhenSpent: async () => Promise.resolve() },
    metrics: new GatewayMetrics('.'),
    atOnce: 2,
  });
  const running = [acceptance.accept(source, message), acceptance.accept(source, message)];
  await expect(acceptance.accept(source, message)).rejects.toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 });
  disks[0]?.resolve(receipt);
  disks[1]?.reject(new Error('disk full'));
  await expect(Promise.allSettled(running)).resolves.toMatchObject([{ value: receipt }, { status: 'rejected' }]);
  disks[2]?.resolve(receipt);
  expect(await acceptance.accept(source, message)).toEqual(receipt);
});

const asked: AskedFor = { agent: 'cs', message: 'hello', contactId: null, sender: 'ada', channel: 'web', attachmentKeys: ['u_1', 'u_2'] };

describe('requestHash', () => {
  it('is the same for the same request', () => {
    expect(requestHash({ ...asked })).toBe(requestHash(asked));
    expect(requestHash(asked)).toMatch(/^[0-9a-f]{64}$/u);
  });

  it.each([
    { agent: 'admin' },
    { message: 'hello ' },
    { contactId: 'a'.repeat(32) },
    { sender: null },
    { channel: 'channel_a' },
    { attachmentKeys: ['u_2', 'u_1'] },
    { attachmentKeys: [] },
  ])('changes with %p', (difference) => {
    expect(requestHash({ ...asked, ...difference })).not.toBe(requestHash(asked));
  });

  it('does not take one field for another', () => {
    expect(requestHash({ ...asked, sender: 'a', contactId: null })).not.toBe(requestHash({ ...asked, sender: null, contactId: 'a' }));
  });
});
