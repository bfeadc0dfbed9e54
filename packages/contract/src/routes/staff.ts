import { z } from 'zod';
import { AssigneeBody, SavedAnswer, SessionStaff, StaffNote, StaffNoteBody, StaffNoteId } from '../channels/staff-note.ts';
import { ContactId } from '../turns/chat.ts';
import { defineRoute } from './route.ts';

const params = z.object({ id: ContactId });

export const getSessionStaff = defineRoute({
  id: 'getSessionStaff',
  method: 'get',
  path: '/api/sessions/{id}/staff',
  tag: 'handoffs',
  summary: 'What staff has noted in a conversation, and who looks after it',
  description: 'For staff alone: no agent, no model and no contact sees any of it.',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  answers: { 200: { description: 'Notes and assignee.', json: SessionStaff } },
  errors: ['not_found'],
});

export const addStaffNote = defineRoute({
  id: 'addStaffNote',
  method: 'post',
  path: '/api/sessions/{id}/notes',
  tag: 'handoffs',
  summary: 'Note something in a conversation, for staff alone',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: StaffNoteBody },
  answers: { 201: { description: 'The note.', json: StaffNote } },
  errors: ['not_found', 'conflict'],
});

export const removeStaffNote = defineRoute({
  id: 'removeStaffNote',
  method: 'delete',
  path: '/api/sessions/{id}/notes/{note}',
  tag: 'handoffs',
  summary: 'Delete a note of staff',
  auth: 'key',
  scopes: ['admin'],
  params: z.object({ id: ContactId, note: StaffNoteId }),
  answers: { 204: { description: 'It is gone.' } },
  errors: ['not_found'],
});

export const assignSession = defineRoute({
  id: 'assignSession',
  method: 'put',
  path: '/api/sessions/{id}/assignee',
  tag: 'handoffs',
  summary: 'Say which staff member looks after a conversation',
  description: 'It changes nothing about who answers: see POST /api/sessions/{id}/handoff.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: AssigneeBody },
  answers: { 200: { description: 'Notes and assignee as they are now.', json: SessionStaff } },
  errors: ['not_found'],
});

export const listAnswers = defineRoute({
  id: 'listAnswers',
  method: 'get',
  path: '/api/answers',
  tag: 'handoffs',
  summary: 'Saved answers for staff, by name',
  description: 'The files `answers/<name>.md`, written like any file. One that is longer than a message may be is left out.',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'The first hundred.', json: z.array(SavedAnswer) } },
  errors: [],
});
