import type { AssistantMessage, SessionMessage, ToolCall, ToolMessage } from '@concierge/contract';

/** What the model gets for a call whose result is unknown. */
export const unknownOutcome =
  'The outcome of this call is unknown: the work was interrupted before a result was recorded. It may have taken effect. Check before you do it again.';

/**
 * Makes a conversation one that a model provider accepts: every tool call has exactly one result, right behind the
 * message that made it, in the order of the calls; there are no other results. A missing result is made up as
 * `unknownOutcome`, marked as an error. Returns the same array when there is nothing to repair. Pure; the same repair
 * of the same messages has the same ids.
 */
export function repairUnpaired(messages: readonly SessionMessage[]): readonly SessionMessage[] {
  const repaired: SessionMessage[] = [];
  const seen = new Set<string>();
  for (const [index, message] of messages.entries()) {
    // Results are placed with the message that made their calls; one that is met here and was not placed belongs to no
    // call.
    if (message.role === 'tool' || seen.has(message.id)) continue;
    seen.add(message.id);
    if (message.role === 'user') {
      repaired.push(message);
      continue;
    }
    const assistant = withEachCallOnce(message);
    repaired.push(assistant, ...findResults(assistant, messages, index + 1));
  }
  return isSame(messages, repaired) ? messages : repaired;
}

function withEachCallOnce(assistant: AssistantMessage): AssistantMessage {
  const calls = assistant.toolCalls ?? [];
  const unique = calls.filter((call, index) => calls.findIndex((other) => other.id === call.id) === index);
  return unique.length === calls.length ? assistant : { ...assistant, toolCalls: unique };
}

/**
 * One result per call, in order of the calls, from what follows up to the next assistant message that calls tools
 * itself.
 */
function findResults(assistant: AssistantMessage, messages: readonly SessionMessage[], from: number): ToolMessage[] {
  const calls = assistant.toolCalls ?? [];
  if (calls.length === 0) return [];
  const found = new Map<string, ToolMessage>();
  for (let index = from; index < messages.length; index += 1) {
    const message = messages[index];
    // A provider may use the ids of its calls again: what comes after other calls belongs to those.
    if (message?.role === 'assistant' && message.id !== assistant.id && (message.toolCalls ?? []).length > 0) break;
    if (message?.role === 'tool' && !found.has(message.callId)) found.set(message.callId, message);
  }
  return calls.map((call) => found.get(call.id) ?? unknownResult(assistant, call));
}

function unknownResult({ id, turnId, at }: AssistantMessage, call: ToolCall): ToolMessage {
  return {
    id: `${id}-${call.id}-unknown`,
    turnId,
    at,
    role: 'tool',
    callId: call.id,
    name: call.name,
    output: unknownOutcome,
    isError: true,
  };
}

function isSame(one: readonly SessionMessage[], other: readonly SessionMessage[]): boolean {
  return one.length === other.length && one.every((message, index) => message === other[index]);
}
