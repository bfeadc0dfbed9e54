import { channelDefinitions, isMessagingChannel, type ChannelName } from '@concierge/contract';
import type { ReactNode } from 'react';

export function channelLabel(channel: ChannelName): string {
  return isMessagingChannel(channel) ? channelDefinitions[channel].label : 'Web';
}

export function AgentBadge({ agent }: { readonly agent: string }): ReactNode {
  const tone = agent === 'admin' ? 'bg-primary-soft text-primary' : 'bg-muted text-muted-foreground ring-1 ring-border ring-inset';
  return <span className={`rounded px-1.5 py-px text-[0.6875rem] leading-4 font-medium ${tone}`}>{agent}</span>;
}
