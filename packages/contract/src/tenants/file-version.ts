import { z } from 'zod';
import { limits } from '../limits.ts';
import { Actor } from '../values/actor.ts';

/** The id of a kept version: its time, so that names sort as they were written, and a random part. */
export const FileVersionId = z.string().regex(/^\d{15}-[0-9a-f]{8}$/u, 'is not the id of a version');

/** Versions that are kept of one file, the newest ones. */
export const FILE_VERSIONS_MAX = 20;

/** tenants/<id>/settings/history/<hash of the path>/<id>.json: written once, and removed. */
export const FileVersion = z.strictObject({
  version: z.literal(1),
  path: z.string(),
  at: z.iso.datetime(),
  /** Null: not known; something wrote it that leaves no name, such as a command in the sandbox. */
  by: Actor.nullable(),
  /** Null: the file was deleted. */
  text: z.string().nullable(),
});
export type FileVersion = z.infer<typeof FileVersion>;

export const FileVersionView = z
  .object({
    id: FileVersionId,
    at: z.iso.datetime(),
    by: Actor.nullable().meta({ description: 'Null: not known, such as a command in the sandbox.' }),
    size: z.int().nonnegative(),
    isRemoved: z.boolean().meta({ description: 'The file was deleted then.' }),
    text: z.string().max(limits.fileMaxBytes).optional().meta({ description: 'Only of the version that was asked for by `id`.' }),
  })
  .meta({ id: 'FileVersion' });
export type FileVersionView = z.infer<typeof FileVersionView>;

/** GET /api/file-history/{path}: the newest first. */
export const FileHistoryView = z
  .object({ path: z.string(), versions: z.array(FileVersionView).max(FILE_VERSIONS_MAX) })
  .meta({ id: 'FileHistory' });

export const FileRestoreBody = z
  .strictObject({ id: FileVersionId.meta({ description: 'The version to write again.' }) })
  .meta({ id: 'FileRestore' });
