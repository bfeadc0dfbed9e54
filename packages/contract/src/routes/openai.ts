import { z } from 'zod';
import { limits } from '../limits.ts';
import { ChatCompletion, ChatCompletionBody, ModelObject, ResponseBody, ResponseObject } from '../turns/openai.ts';
import { chatErrors, chatHeaders } from './chat.ts';
import { defineRoute } from './route.ts';

const headers = {
  'Idempotency-Replayed': '`true` when this Idempotency-Key had already been accepted.',
  'X-Concierge-Turn-Id': 'The turn, as GET /api/turns/{id} knows it.',
  'X-Concierge-Contact-Id': 'The conversation: given as `conversation`, it continues.',
} as const;

const errors = [...chatErrors, 'contact_mismatch'] as const;

const explanation = `The agent's tools run on our side and are not shown; fields that are not listed are ignored. What follows the last assistant message is the new message, of at most ${String(limits.messageMaxCharacters)} characters. With \`user\` or \`conversation\` the conversation is kept here. Without them it is recognised by its history, as long as that is sent back as it was answered; a history that is not known is given to the agent as a transcript, however long it is. Images and files come as data (\`data:\` URLs), by https addresses, or as ids of uploads.`;

/** POST /v1/chat/completions: a turn in the words of OpenAI's Chat Completions API. */
export const createChatCompletion = defineRoute({
  id: 'createChatCompletion',
  method: 'post',
  path: '/v1/chat/completions',
  tag: 'openai',
  summary: 'Talk to an agent as to a model: Chat Completions',
  description: explanation,
  auth: 'key',
  scopes: ['admin', 'cs'],
  waitsForTurn: true,
  headers: chatHeaders,
  body: { kind: 'json', schema: ChatCompletionBody, maxBytes: limits.openAiBodyMaxBytes },
  answers: {
    200: { description: 'The completion, or its chunks with `stream`.', json: ChatCompletion, text: 'text/event-stream', headers },
  },
  errors,
});

/** POST /v1/responses: the same in the words of OpenAI's Responses API. */
export const createResponse = defineRoute({
  id: 'createResponse',
  method: 'post',
  path: '/v1/responses',
  tag: 'openai',
  summary: 'Talk to an agent as to a model: Responses',
  description: explanation,
  auth: 'key',
  scopes: ['admin', 'cs'],
  waitsForTurn: true,
  headers: chatHeaders,
  body: { kind: 'json', schema: ResponseBody, maxBytes: limits.openAiBodyMaxBytes },
  answers: {
    200: { description: 'The response, or its events with `stream`.', json: ResponseObject, text: 'text/event-stream', headers },
  },
  errors,
});

export const listModels = defineRoute({
  id: 'listModels',
  method: 'get',
  path: '/v1/models',
  tag: 'openai',
  summary: 'The agents that the key may talk to, as models',
  description: 'A key for reading sees all of them.',
  auth: 'key',
  scopes: ['admin', 'cs', 'read'],
  answers: {
    200: {
      description: 'The built-in agents first, then by name.',
      json: z.object({ object: z.literal('list'), data: z.array(ModelObject) }),
    },
  },
  errors: [],
});

export const getModel = defineRoute({
  id: 'getModel',
  method: 'get',
  path: '/v1/models/{model}',
  tag: 'openai',
  summary: 'One agent as a model',
  auth: 'key',
  scopes: ['admin', 'cs', 'read'],
  params: z.object({ model: z.string().max(limits.modelNameMaxCharacters) }),
  answers: { 200: { description: 'The agent.', json: ModelObject } },
  errors: ['not_found'],
});
