import { z } from 'zod';

/** Every act that is on record. What older versions recorded stays readable: a stored act is any string. */
export const auditActs = [
  'tenant.create',
  'tenant.update',
  'tenant.suspend',
  'tenant.resume',
  'tenant.delete',
  'tenant.export',
  'tenant.import',
  'settings.update',
  'key.create',
  'key.revoke',
  'key.rotate',
  'file.write',
  'file.delete',
  'file.restore',
  'skill.add',
  'skill.remove',
  'schedule.create',
  'schedule.update',
  'schedule.delete',
  'schedule.run',
  'channel.connect',
  'channel.disconnect',
  'event-endpoint.create',
  'event-endpoint.update',
  'event-endpoint.delete',
  'event-endpoint.rotate',
  'model-key.set',
  'model-key.remove',
  'mcp-server.put',
  'mcp-server.delete',
  'widget.update',
  'widget.rotate-key',
  'widget.rotate-secret',
  'session.delete',
  'session.fork',
  'session.label',
  'contact.forget',
  'contact.erase',
  'note.forget',
  'turn.cancel',
  'turn.cancel-all-begin',
  'turn.cancel-all',
  'turn.retry',
  'index.rebuild',
  'worker.drain',
  'worker.undrain',
  'delivery.redrive',
  'event.redrive',
] as const;
export type AuditAct = (typeof auditActs)[number];

/** Who did it: a client with a key of the tenant, or an operator. */
export const AuditActor = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('key'), keyId: z.string() }),
  z.strictObject({ kind: z.literal('operator'), via: z.enum(['api', 'cli']) }),
]);
export type AuditActor = z.infer<typeof AuditActor>;

/**
 * One line of an audit log: who did what to what, and when. It has names and ids, and never what was written, said or
 * set; of operators' own words, why they did it.
 */
export const AuditEntry = z
  .object({
    at: z.iso.datetime(),
    by: AuditActor,
    act: z.string(),
    /** The tenant that it was done to; null where it was none. */
    tenantId: z.string().nullable(),
    /** Id, name or path of what it was done to; null for the tenant as a whole. */
    target: z.string().nullable(),
    /** `X-Request-Id` of the request; null at the command line. */
    requestId: z.string().nullable(),
    reason: z.string().optional().meta({ description: 'Why, in the words of the operator; only where one was given.' }),
    turns: z.int().nonnegative().optional().meta({ description: 'How many turns it was done to; only of an act on many at once.' }),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;
