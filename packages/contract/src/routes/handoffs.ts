import { z } from 'zod';
import { ContactId } from '../turns/chat.ts';
import { HandoffBody, HandoffState, HandoffView, PersonMessageBody, PersonMessageReceipt, WaitingHandoff } from '../channels/handoff.ts';
import { chatHeaders } from './chat.ts';
import { limitParameter, defineRoute } from './route.ts';

const params = z.object({ id: ContactId });

export const listHandoffs = defineRoute({
  id: 'listHandoffs',
  method: 'get',
  path: '/api/handoffs',
  tag: 'handoffs',
  summary: 'Conversations that wait for staff, the longest wait first',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({ limit: limitParameter }),
  answers: {
    200: {
      description: 'The first of them.',
      json: z.array(WaitingHandoff),
      headers: { 'X-Total-Count': 'How many wait in all.' },
    },
  },
  errors: [],
});

export const getHandoff = defineRoute({
  id: 'getHandoff',
  method: 'get',
  path: '/api/sessions/{id}/handoff',
  tag: 'handoffs',
  summary: 'Who has the conversation, and its last handoff',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  answers: { 200: { description: 'A handoff of `null` when there never was one.', json: HandoffState } },
  errors: ['not_found'],
});

export const takeOver = defineRoute({
  id: 'takeOver',
  method: 'post',
  path: '/api/sessions/{id}/handoff',
  tag: 'handoffs',
  summary: 'A staff member takes the conversation over',
  description:
    'From here on the agent answers nothing in it, and what it is just answering is cancelled. A conversation that is handed over already stays as it is. What the contact writes in the meantime is kept; the agent sees it once the conversation is given back.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: HandoffBody },
  answers: {
    200: { description: 'It had been handed over already.', json: HandoffView },
    201: { description: 'It is.', json: HandoffView },
  },
  errors: ['not_found'],
});

export const giveBack = defineRoute({
  id: 'giveBack',
  method: 'post',
  path: '/api/sessions/{id}/resume',
  tag: 'handoffs',
  summary: 'Give the conversation back to the agent',
  description:
    'Has no effect on one that the agent has. Nothing is sent late: the agent answers from the next message on, and sees all messages.',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 200: { description: 'How it stands now.', json: HandoffState } },
  errors: ['not_found'],
});

export const answerAsPerson = defineRoute({
  id: 'answerAsPerson',
  method: 'post',
  path: '/api/sessions/{id}/messages',
  tag: 'handoffs',
  summary: "Send a message in the agent's place",
  description:
    'A turn without a model: the message stands in the conversation in order with the others, and goes out on the channel of the conversation. Only while it is handed over; otherwise `conflict`.',
  auth: 'key',
  scopes: ['admin'],
  params,
  headers: chatHeaders,
  body: { kind: 'json', schema: PersonMessageBody },
  answers: {
    202: {
      description: 'Accepted. Its turn can be followed like any other.',
      json: PersonMessageReceipt,
      headers: { 'Idempotency-Replayed': '`true` when this Idempotency-Key had already been accepted.' },
    },
  },
  errors: ['not_found', 'conflict', 'idempotency_conflict', 'too_many_waiting'],
});
