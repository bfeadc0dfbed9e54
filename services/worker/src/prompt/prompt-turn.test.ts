import { describe, expect, it } from '@jest/globals';
import type { AcceptedTurn } from '@concierge/contract';
import { buildUserMessage } from './prompt-turn.ts';

const turn: AcceptedTurn = {
  version: 1,
  turnId: 't1',
  tenantId: 'acme',
  sessionId: 's1',
  acceptedAtMs: 0,
  origin: 'api',
  agent: 'cs',
  authority: 'cs',
  channel: 'web',
  sender: null,
  text: 'Open?',
  attachments: [],
  requestHash: '',
  keyId: null,
};
const readText = async (): Promise<undefined> => Promise.resolve(undefined);

describe('the message of a turn', () => {
  it('shows the model the preface of an application, and keeps that out of the message', async () => {
    const preface = '[The conversation so far]\nUser: Hi';
    const { text, sent } = await buildUserMessage([{ turn: { ...turn, preface } }], { timezone: undefined }, readText);
    expect(text).toBe('Open?');
    expect(sent).toContain('\n\n[The conversation so far]\nUser: Hi\n\n[New message]\nOpen?');
  });
});
