import { z } from 'zod';

export const uploadTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf', 'text/plain'] as const;
export const UploadType = z.enum(uploadTypes);

export const UploadId = z.string().regex(/^u_[0-9a-f]{32}$/u);

/** What POST /api/uploads answers and a session keeps: the reference, never the bytes. */
export const UploadRef = z
  .object({ id: UploadId, name: z.string().min(1).max(255), type: UploadType, size: z.int().nonnegative() })
  .meta({ id: 'UploadRef' });
export type UploadRef = z.infer<typeof UploadRef>;
