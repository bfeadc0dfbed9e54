import type { UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { storeUpload, type LookedAtFile } from '@concierge/upload';
import type { GatewayMetrics } from '../metrics.ts';

export interface StoreOptions {
  readonly metrics: Pick<GatewayMetrics, 'uploads'>;
}

/** Keeps a file that came over HTTP, and counts it. */
export async function storeCounted(scope: TenantScope, file: LookedAtFile, { metrics }: StoreOptions): Promise<UploadRef> {
  const ref = await storeUpload(scope, file);
  metrics.uploads.inc({ type: file.type });
  return ref;
}
