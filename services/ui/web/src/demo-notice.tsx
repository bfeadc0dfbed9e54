import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { GatewayClient } from '../../src/chat/gateway-client.ts';

/**
 * Shown when no model is set up and the built-in demo model answers. A key for cs alone may not ask; there every reply
 * states it.
 */
export function DemoNotice({ gateway, canAsk }: { readonly gateway: GatewayClient; readonly canAsk: boolean }): ReactNode {
  const tenant = useQuery({
    queryKey: ['tenant'],
    enabled: canAsk,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => gateway.readTenant(signal),
  });
  if (tenant.data?.demoModel !== true) return null;
  return (
    <p role="status" className="border-b bg-muted px-3 py-2 text-xs text-muted-foreground sm:px-5">
      The built-in demo model answers: no model provider is set up. Its replies are canned. Put a provider and its key into providers.json
      and restart the service.
    </p>
  );
}
