import { z } from 'zod';
import { AdminChatBody, AgentChatBody, ChatQuery, ChatReply, CsChatBody, UploadId, UploadRef } from '../turns/chat.ts';
import { limits } from '../limits.ts';
import { AgentName } from '../tenants/tenant.ts';
import { defineRoute } from './route.ts';

const visibleAscii = /^[\u0021-\u007e]+$/u;
const IdempotencyKey = z.string().min(1).max(limits.idempotencyKeyMaxCharacters).regex(visibleAscii, 'must be visible ASCII characters');

/** Headers of every request that an agent answers. */
export const chatHeaders = z.object({
  'idempotency-key': IdempotencyKey.optional().meta({
    description: 'The same key and body within 24 hours is the same turn, never a second one.',
  }),
});

const answers = {
  200: {
    description: 'The reply: a stream of turn events, or one JSON object with `Accept: application/json`.',
    json: ChatReply,
    events: true,
    headers: { 'Idempotency-Replayed': '`true` when this Idempotency-Key had already been accepted.' },
  },
} as const;

/** With which accepting or running a turn may fail. */
export const chatErrors = [
  'not_found',
  'session_busy',
  'idempotency_conflict',
  'too_many_waiting',
  'budget_exceeded',
  'provider_error',
  'turn_crashed',
  'turn_timeout',
] as const;

/** POST /api/admin (service interface). */
export const chatWithAdmin = defineRoute({
  id: 'chatWithAdmin',
  method: 'post',
  path: '/api/admin',
  tag: 'chat',
  summary: 'Talk to the owner-facing agent',
  auth: 'key',
  scopes: ['admin'],
  waitsForTurn: true,
  query: ChatQuery,
  headers: chatHeaders,
  body: { kind: 'json', schema: AdminChatBody },
  answers,
  errors: chatErrors,
});

/** POST /api/cs (service interface). */
export const chatWithCs = defineRoute({
  id: 'chatWithCs',
  method: 'post',
  path: '/api/cs',
  tag: 'chat',
  summary: 'Talk to the customer-facing agent',
  auth: 'key',
  scopes: ['admin', 'cs'],
  waitsForTurn: true,
  query: ChatQuery,
  headers: chatHeaders,
  body: { kind: 'json', schema: CsChatBody },
  answers,
  errors: [...chatErrors, 'contact_mismatch'],
});

/** POST /api/agents/{agent}: the same for every agent of the tenant. */
export const chatWithAgent = defineRoute({
  id: 'chatWithAgent',
  method: 'post',
  path: '/api/agents/{agent}',
  tag: 'chat',
  summary: 'Talk to any agent',
  description:
    'The agents `admin` and `cs`, each by its own rules, and those of `agents/<name>.md`. One that is not public needs the scope `admin`. `sender` and `channel` are not for `admin`.',
  auth: 'key',
  scopes: ['admin', 'cs'],
  waitsForTurn: true,
  params: z.object({ agent: AgentName }),
  query: ChatQuery,
  headers: chatHeaders,
  body: { kind: 'json', schema: AgentChatBody },
  answers,
  errors: [...chatErrors, 'contact_mismatch'],
});

/** POST /api/uploads (service interface). */
export const createUploads = defineRoute({
  id: 'createUploads',
  method: 'post',
  path: '/api/uploads',
  tag: 'uploads',
  summary: 'Upload files to attach to messages',
  description: 'png, jpeg, gif, webp, PDF and UTF-8 text, 10 MiB each; the type is read from the bytes, whatever the request declares.',
  auth: 'key',
  scopes: ['admin', 'cs'],
  body: {
    kind: 'files',
    schema: z.object({
      file: z
        .array(z.string().meta({ format: 'binary' }))
        .min(1)
        .max(limits.uploadFilesMax),
    }),
  },
  answers: { 201: { description: 'References, in the order of the files.', json: z.array(UploadRef) } },
  errors: [],
});

export const getUpload = defineRoute({
  id: 'getUpload',
  method: 'get',
  path: '/api/uploads/{id}',
  tag: 'uploads',
  summary: 'Download an uploaded file',
  description: 'Always as an attachment, with the type that its bytes have: nothing of it is run or shown in place.',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: z.object({ id: UploadId }),
  answers: {
    200: {
      description: 'Its bytes.',
      text: 'application/octet-stream',
      headers: { 'Content-Disposition': '`attachment`, with its name.' },
    },
  },
  errors: ['not_found'],
});
