import { useId, type ReactNode } from 'react';
import { channelDefinitions, isMessagingChannel, type ChannelName } from '@concierge/contract';
import { useQuery } from '@tanstack/react-query';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import type { Reach } from '../../../src/signed-in.ts';
import { useWords } from '../words/words.tsx';

export interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string; readonly disabled?: boolean }[];
  readonly onChange: (value: Value) => void;
}

/** One of a few, side by side: radio buttons, so that arrow keys and screen readers know them. */
export function Choice<Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>): ReactNode {
  // The same choice may be there twice, in what a phone hides and in its drawer: buttons of one name are one choice.
  const name = useId();
  return (
    <fieldset className="flex rounded-lg bg-muted p-0.5 text-[0.8125rem]">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <label
          key={option.value}
          // The button itself, which is not drawn, is scrolled to when it has the focus: it lies within its label.
          className="relative flex-1 cursor-pointer rounded-md px-2.5 py-1 text-center font-medium text-muted-foreground has-checked:bg-card has-checked:text-foreground has-checked:shadow-sm has-disabled:cursor-not-allowed has-disabled:opacity-50 has-focus-visible:outline-2 has-focus-visible:outline-ring forced-colors:has-checked:underline forced-colors:has-checked:outline-2 dark:has-checked:bg-border"
        >
          <input
            type="radio"
            name={name}
            className="sr-only"
            checked={option.value === value}
            disabled={option.disabled}
            onChange={() => onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}

export function channelLabel(channel: ChannelName): string {
  return isMessagingChannel(channel) ? channelDefinitions[channel].label : 'Web';
}

export function AgentBadge({ agent }: { readonly agent: string }): ReactNode {
  const tone = agent === 'admin' ? 'bg-primary-soft text-primary' : 'bg-muted text-muted-foreground ring-1 ring-border ring-inset';
  return <span className={`rounded px-1.5 py-px truncate text-[0.6875rem] leading-4 font-medium ${tone}`}>{agent}</span>;
}

interface AgentChoiceProps {
  readonly gateway: GatewayClient;
  readonly reach: Reach;
  readonly agent: string;
  readonly onAgent: (agent: string) => void;
}

/**
 * The agent that answers: one of the two built-in agents side by side, or any of a list where the tenant has agents of
 * its own.
 */
export function AgentChoice({ gateway, reach, agent, onAgent }: AgentChoiceProps): ReactNode {
  const words = useWords().chat.agents;
  const agents = useQuery({ queryKey: ['agents'], enabled: reach === 'tenant', queryFn: async ({ signal }) => gateway.listAgents(signal) });
  const own = (agents.data ?? []).filter(({ builtIn, problem }) => !builtIn && problem === null);
  const builtIn = [
    { value: 'admin', label: words.admin, disabled: reach === 'cs' },
    { value: 'cs', label: words.cs },
  ];
  if (own.length === 0) return <Choice label={words.choose} value={agent} options={builtIn} onChange={onAgent} />;
  return (
    <select
      aria-label={words.choose}
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
