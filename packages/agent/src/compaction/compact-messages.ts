import type { SessionMessage, SessionSummary, TurnStep } from '@concierge/contract';

/** What a compaction does to the messages of a conversation: `moved` go to the history file. */
export function compactMessages(
  messages: readonly SessionMessage[],
  step: Extract<TurnStep, { kind: 'compaction' }>,
): { readonly moved: SessionMessage[]; readonly kept: SessionMessage[] } {
  const pruned = new Set(step.prunedIds);
  const cut = step.keepFromId === null ? messages.length : messages.findIndex((message) => message.id === step.keepFromId);
  // A cut that names a message of another version of the session moves nothing: too much context is better than a
  // lost message.
  const moved = messages.slice(0, Math.max(cut, 0));
  const kept = withNewestHeartbeat(messages.slice(moved.length)).map((message): SessionMessage =>
    message.role === 'tool' && pruned.has(message.id) ? { ...message, pruned: true } : message,
  );
  return { moved, kept };
}

export function summaryWith({ heartbeat: _known, ...summary }: SessionSummary, heartbeat: string | undefined): SessionSummary {
  return { ...summary, ...(heartbeat !== undefined && { heartbeat }) };
}

/** The same messages with the last copy of HEARTBEAT alone. */
function withNewestHeartbeat(messages: readonly SessionMessage[]): SessionMessage[] {
  const newest = messages.findLast((message) => message.role === 'user' && message.heartbeat !== undefined);
  return messages.map((message) => {
    if (message.role !== 'user' || message.heartbeat === undefined || message === newest) return message;
    const { heartbeat: _older, ...rest } = message;
    return rest;
  });
}
