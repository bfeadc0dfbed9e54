import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { ContactId } from '../turns/chat.ts';
import { limits } from '../limits.ts';

/** What a staff member is called: keys may be shared, so it is what the client says. */
export const StaffName = z.string().trim().min(1).max(limits.staffNameMaxCharacters);

export const StaffNoteId = z.string().regex(/^n_[0-9a-f]{32}$/u, 'is not the id of a note');

/** The conversation that a record is about: a later one of the same contact has the same id. */
const ofSession = { sessionId: ContactId, sessionCreatedAt: z.iso.datetime() };

/** tenants/<id>/handoffs/notes/<sessionId>/<id>.json: what staff writes for staff, in no prompt and no message. */
export const StoredStaffNote = z.strictObject({
  version: z.literal(1),
  id: StaffNoteId,
  ...ofSession,
  text: z.string().min(1).max(limits.staffNoteMaxCharacters),
  author: StaffName.nullable(),
  by: Actor,
  at: z.iso.datetime(),
});
export type StoredStaffNote = z.infer<typeof StoredStaffNote>;

/** tenants/<id>/handoffs/assignees/<sessionId>.json: the staff member who looks after the conversation. */
export const StoredAssignee = z.strictObject({ version: z.literal(1), ...ofSession, name: StaffName, by: Actor, since: z.iso.datetime() });
export type StoredAssignee = z.infer<typeof StoredAssignee>;

export const StaffNote = z
  .object({
    id: StaffNoteId,
    text: z.string(),
    author: z.string().nullable().meta({ description: 'The name that its writer gave.' }),
    by: Actor,
    at: z.iso.datetime(),
  })
  .meta({ id: 'StaffNote' });
export type StaffNote = z.infer<typeof StaffNote>;

export const Assignee = z.object({ name: z.string(), by: Actor, since: z.iso.datetime() }).meta({ id: 'Assignee' });
export type Assignee = z.infer<typeof Assignee>;

/** GET /api/sessions/{id}/staff */
export const SessionStaff = z
  .object({
    assignee: Assignee.nullable().meta({ description: 'Who looks after the conversation; null: no one in particular.' }),
    notes: z.array(StaffNote).meta({ description: 'The first one first.' }),
  })
  .meta({ id: 'SessionStaff' });
export type SessionStaff = z.infer<typeof SessionStaff>;

export const StaffNoteBody = z
  .strictObject({
    text: z.string().trim().min(1).max(limits.staffNoteMaxCharacters),
    author: StaffName.optional().meta({ description: 'The name of its writer, for readers.' }),
  })
  .meta({ id: 'StaffNoteBody' });
export const AssigneeBody = z
  .strictObject({ name: StaffName.nullable().meta({ description: 'The staff member; null: no one in particular.' }) })
  .meta({ id: 'AssigneeBody' });

/** GET /api/answers */
export const SavedAnswer = z
  .object({
    name: z.string().meta({ description: 'The name of its file, without `.md`.' }),
    text: z.string(),
  })
  .meta({ id: 'SavedAnswer' });
export type SavedAnswer = z.infer<typeof SavedAnswer>;
