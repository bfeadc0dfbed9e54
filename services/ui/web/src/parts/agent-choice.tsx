import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Choice } from './choice.tsx';
import type { SignedIn } from '../signed-in.ts';

export interface AgentChoiceProps {
  readonly gateway: GatewayClient;
  readonly reach: SignedIn['reach'];
  readonly agent: string;
  readonly onAgent: (agent: string) => void;
}

/**
 * The agent that answers: one of the two built-in agents side by side, or any of a list where the tenant has agents of
 * its own.
 */
export function AgentChoice({ gateway, reach, agent, onAgent }: AgentChoiceProps): ReactNode {
  const agents = useQuery({ queryKey: ['agents'], enabled: reach === 'tenant', queryFn: async ({ signal }) => gateway.listAgents(signal) });
  const own = (agents.data ?? []).filter(({ builtIn, problem }) => !builtIn && problem === null);
  const builtIn = [
    { value: 'admin', label: 'Admin', disabled: reach === 'cs' },
    { value: 'cs', label: 'Customer' },
  ];
  if (own.length === 0) return <Choice label="Agent" value={agent} options={builtIn} onChange={onAgent} />;
  return (
    <select
      aria-label="Agent"
      className="h-8 w-full rounded-lg border border-input bg-background px-2 text-[0.8125rem]"
      value={agent}
      onChange={(event) => onAgent(event.target.value)}
    >
      {[...builtIn, ...own.map(({ name }) => ({ value: name, label: name }))].map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}
