import { z } from 'zod';
import { limits } from '../limits.ts';
import { UploadRef } from '../turns/upload.ts';
import { defineRoute } from './route.ts';

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
