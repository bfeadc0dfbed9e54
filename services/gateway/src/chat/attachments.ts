import { AppError, type InvalidField, type UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** An attachment in a request body: the whole reference, or its id alone. */
export type GivenAttachment = UploadRef | { readonly id: string };

/**
 * The stored references behind those of a request. One that was given whole must be the stored one: its name and type
 * are not for the caller to choose.
 * @throws AppError `invalid_request` naming each that is no upload of this tenant
 */
export async function resolveAttachments(scope: TenantScope, given: readonly GivenAttachment[]): Promise<UploadRef[]> {
  const found = await Promise.all(given.map(async (attachment) => await scope.uploads.find(attachment.id)));
  const errors: InvalidField[] = [];
  const resolved: UploadRef[] = [];
  for (const [index, attachment] of given.entries()) {
    const stored = found[index];
    if (stored === undefined) errors.push({ path: `attachments.${String(index)}`, message: 'is not an upload of this tenant' });
    else if (differs(attachment, stored))
      errors.push({ path: `attachments.${String(index)}`, message: 'is not what was uploaded under this id' });
    else resolved.push(stored);
  }
  if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
  return resolved;
}

function differs(given: GivenAttachment, stored: UploadRef): boolean {
  return 'name' in given && (given.name !== stored.name || given.type !== stored.type || given.size !== stored.size);
}
