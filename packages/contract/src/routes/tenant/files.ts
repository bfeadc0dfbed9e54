import { z } from 'zod';
import { limits } from '../../limits.ts';
import { FileProblem } from '../../tenants/file-problem.ts';
import { FileHistoryView, FileRestoreBody, FileVersionId } from '../../tenants/file-version.ts';
import { flagParameter, integerParameter, defineRoute } from '../route.ts';

const FILES_LIST_MAX = 10_000;

export const FileItem = z
  .object({
    path: z.string(),
    kind: z.enum(['file', 'folder']),
    size: z.int().nonnegative(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'FileItem' });
export type FileItem = z.infer<typeof FileItem>;

const params = z.object({ path: z.string().min(1).max(4096) });
const etag = z.string().max(256);
const conditions = z.object({
  'if-match': etag.optional().meta({ description: 'Only if the file still has this ETag, or with `*` if it exists.' }),
  'if-none-match': etag.optional().meta({ description: '`*`: only if there is no such file yet.' }),
});
/** More than an agent or skill may have. */
const CHECKED_MAX_BYTES = 256 * 1024;
const etagHeader = { ETag: 'Version of the file, for If-Match.' } as const;

/** An agent or a skill is kept as it was written, and cannot be used until it is right. */
const WrittenFile = z
  .object({
    problem: z.string().nullable().meta({ description: 'Why the agent or skill of this file cannot be used; null when nothing is wrong.' }),
    problems: z.array(FileProblem).optional().meta({ description: 'The same, one each; none when nothing is wrong.' }),
    warnings: z
      .array(z.string())
      .optional()
      .meta({ description: 'What the agent of this file will not do well, such as a model too small for its tools.' }),
  })
  .meta({ id: 'WrittenFile' });

export const listFiles = defineRoute({
  id: 'listFiles',
  method: 'get',
  path: '/api/files',
  tag: 'files',
  summary: 'Context files, skills, templates, agents and memory',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    path: z.string().min(1).max(4096).optional().meta({ description: 'A folder; the whole of what can be edited when omitted.' }),
    recursive: flagParameter,
    limit: integerParameter({ min: 1, max: FILES_LIST_MAX, default: 1000 }),
  }),
  answers: { 200: { description: 'Files and folders by path.', json: z.array(FileItem) } },
  errors: ['not_found'],
});

export const getFile = defineRoute({
  id: 'getFile',
  method: 'get',
  path: '/api/files/{path}',
  rest: true,
  tag: 'files',
  summary: 'Read a file',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  headers: z.object({ 'if-none-match': etag.optional() }),
  answers: {
    200: { description: 'The text of the file.', text: 'text/plain; charset=utf-8', headers: etagHeader },
    304: { description: 'It still has the ETag of If-None-Match.', headers: etagHeader },
  },
  errors: ['not_found', 'too_large'],
});

export const putFile = defineRoute({
  id: 'putFile',
  audit: 'file.write',
  method: 'put',
  path: '/api/files/{path}',
  rest: true,
  tag: 'files',
  summary: 'Write a file',
  auth: 'key',
  scopes: ['admin'],
  params,
  headers: conditions,
  body: { kind: 'text', maxBytes: limits.fileMaxBytes },
  answers: {
    200: { description: 'It is replaced, and cannot be used.', json: WrittenFile, headers: etagHeader },
    201: { description: 'It is new.', json: WrittenFile, headers: etagHeader },
    204: { description: 'It is replaced.', headers: etagHeader },
  },
  errors: ['not_found', 'precondition_failed', 'memory_quota'],
});

export const checkFile = defineRoute({
  id: 'checkFile',
  method: 'post',
  path: '/api/file-check/{path}',
  rest: true,
  tag: 'files',
  summary: 'What would be wrong with a file',
  description: 'What writing this text to this path would answer, of an agent or a skill. Nothing is stored; other files are never wrong.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'text', maxBytes: CHECKED_MAX_BYTES },
  answers: { 200: { description: 'It was looked at.', json: WrittenFile } },
  errors: [],
});

export const deleteFile = defineRoute({
  id: 'deleteFile',
  audit: 'file.delete',
  method: 'delete',
  path: '/api/files/{path}',
  rest: true,
  tag: 'files',
  summary: 'Delete a file',
  auth: 'key',
  scopes: ['admin'],
  params,
  headers: z.object({ 'if-match': etag.optional() }),
  answers: { 204: { description: 'It is gone.' } },
  errors: ['not_found', 'precondition_failed'],
});

export const listFileVersions = defineRoute({
  id: 'listFileVersions',
  method: 'get',
  path: '/api/file-history/{path}',
  rest: true,
  tag: 'files',
  summary: 'What was written to a file, by whom and when',
  description:
    'The last versions of context files, skills, templates and agents; of a deleted file, too. Notes have none: what is forgotten is gone.',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  query: z.strictObject({ id: FileVersionId.optional().meta({ description: 'A version whose text is wanted.' }) }),
  answers: { 200: { description: 'Versions, the newest first.', json: FileHistoryView } },
  errors: [],
});

export const restoreFile = defineRoute({
  id: 'restoreFile',
  audit: 'file.restore',
  method: 'post',
  path: '/api/file-history/{path}',
  rest: true,
  tag: 'files',
  summary: 'Write a version of a file again',
  description: 'It is the newest version then; nothing of the history is lost.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: FileRestoreBody },
  answers: { 200: { description: 'It is written.', json: WrittenFile, headers: etagHeader } },
  errors: ['not_found', 'memory_quota'],
});
