import type { Routes } from '@concierge/contract';
import type { z } from 'zod';

/** Routes whose body is JSON. */
type WithJson = { [Id in keyof Routes]: Routes[Id] extends { body: { kind: 'json' } } ? Id : never }[keyof Routes];
type BodyOf<Id extends WithJson> = Routes[Id] extends { body: { schema: infer Schema extends z.ZodType } } ? z.input<Schema> : never;

/** A body for each route that takes JSON, which can be sent as it is: a test does. */
export const examples: { readonly [Id in WithJson]: BodyOf<Id> } = {
  chatWithAdmin: { message: 'What came in since yesterday?' },
  chatWithCs: { message: 'When do you open on Saturday?', sender: 'customer-4711' },
  chatWithAgent: { message: 'Write a short product text about our linen shirts.' },
  createChatCompletion: { model: 'admin', messages: [{ role: 'user', content: 'What can you do?' }] },
  createResponse: { model: 'admin', input: 'What can you do?' },
  checkPolicy: { agent: 'cs', tool: 'read', arguments: { path: 'USER.md' } },
  takeOver: { reason: 'The customer asks for a refund.', hours: 4, notify: false },
  answerAsPerson: { message: 'Hello, this is Ada from the shop. I look into it.' },
  addStaffNote: { text: 'She has called already; the parcel is on its way.', author: 'Ada' },
  assignSession: { name: 'Ada' },
  forkSession: { turnId: 't_0123456789abcdef0123456789abcdef', includesTurn: true },
  labelSession: { title: 'Prices for spring', pinned: true },
  updateTenant: { name: 'Linen & Sons', timezone: 'Europe/Berlin' },
  restoreFile: { id: '001760000000000-0123abcd' },
  createKey: { label: 'Website', scopes: ['cs'] },
  eraseContact: { sender: 'customer-4711' },
  createSchedule: {
    name: 'Morning summary',
    message: 'Summarise what came in since yesterday.',
    schedule: { cron: '0 8 * * 1-5', timezone: 'Europe/Berlin' },
  },
  updateSchedule: { enabled: false },
  putChannel: {
    botToken: '123456789:AAEXAMPLE-not-a-real-token-0123456789',
    secretToken: 'example-secret-0123456789abcdef',
    botUsername: 'linen_and_sons_bot',
  },
  simulateChannel: { message: 'Is my order on its way?', sender: 'ada', name: 'Ada' },
  createEventEndpoint: { url: 'https://shop.example/hooks/concierge', types: ['turn.completed'], description: 'Order system' },
  updateEventEndpoint: { includeText: true },
  redriveEventEndpoint: { since: '2026-01-01T00:00:00Z' },
  putModelKey: { apiKey: 'sk-example-0123456789' },
  putMcpServer: { url: 'https://tools.shop.example/mcp', headers: { Authorization: 'Bearer example' }, agents: ['admin'] },
  putWidget: { enabled: true, origins: ['https://shop.example'], appearance: { title: 'Linen & Sons', colour: '#2457d6' } },
  sendWidgetMessage: { message: 'Do you ship to Norway?' },
  createTenant: { id: 'linen-and-sons', name: 'Linen & Sons', plan: 'standard' },
  updateOperatedTenant: { plan: 'standard', limits: { requestsPerHour: 1000 } },
  createTenantKey: { label: 'Website', scopes: ['cs'] },
  eraseTenantContact: { sender: 'customer-4711' },
  retryTurns: { code: 'provider_error', dryRun: true },
  putOperatedModelKey: { apiKey: 'sk-example-0123456789' },
  cancelTurns: { tenant: 'linen-and-sons', dryRun: true },
  reindexTenants: { dryRun: true },
  redriveDeliveries: { channel: 'events', dryRun: true },
};

/** Of a body that is text. */
export const textExample = '# Tone\n\nFriendly and short. We say "you", never "the customer".\n';
