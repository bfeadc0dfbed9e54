import { z } from 'zod';
import { PolicyCheckBody, PolicyVerdict, WhoAmI } from '../../tenants/owner.ts';
import { AgentName } from '../../tenants/tenant.ts';
import { ContactId } from '../../turns/chat.ts';
import { PromptPreview } from '../../turns/prompt.ts';
import { defineRoute } from '../route.ts';

export const whoAmI = defineRoute({
  id: 'whoAmI',
  method: 'get',
  path: '/api/whoami',
  tag: 'tenant',
  summary: 'Whose key this is, and what it may do',
  auth: 'key',
  scopes: ['admin', 'cs', 'read'],
  answers: { 200: { description: 'The tenant and the key.', json: WhoAmI } },
  errors: [],
});

export const checkPolicy = defineRoute({
  id: 'checkPolicy',
  method: 'post',
  path: '/api/policy/check',
  tag: 'agents',
  summary: 'May this agent call this tool?',
  description:
    'Asks the rules that decide in a turn, and runs nothing. A turn may have less: what started it hands on at most its own rights.',
  auth: 'key',
  scopes: ['admin'],
  body: { kind: 'json', schema: PolicyCheckBody },
  answers: { 200: { description: 'Allowed, or refused by which rule.', json: PolicyVerdict } },
  errors: ['not_found'],
});

export const previewPrompt = defineRoute({
  id: 'previewPrompt',
  method: 'get',
  path: '/api/prompt',
  tag: 'agents',
  summary: 'What the model will see at the next turn',
  description:
    'By file, with tokens, and what has changed since the last turn of the conversation. Texts of all files together may be cut to a quarter of the model’s window; that, and tools of MCP servers, are known when the turn runs.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    agent: AgentName.optional().meta({ description: 'Default: that of the conversation, else `admin`.' }),
    session: ContactId.optional().meta({ description: 'A conversation (contact_id); without it a new one.' }),
  }),
  answers: { 200: { description: 'The parts of the prompt.', json: PromptPreview } },
  errors: ['not_found'],
});

export const exportOwnTenant = defineRoute({
  id: 'exportOwnTenant',
  method: 'post',
  path: '/api/export',
  tag: 'tenant',
  summary: 'Everything of the tenant, as a .tar.gz',
  description: 'As `concierge tenant export`. What changes while it is read may be of different moments.',
  auth: 'key',
  scopes: ['admin'],
  answers: { 200: { description: 'The archive.', text: 'application/gzip', headers: { 'Content-Disposition': 'A name for the file.' } } },
  errors: ['overloaded'],
});
