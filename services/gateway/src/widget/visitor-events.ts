import { encodeServerSentEvent, type TurnEvent, type VisitorEvent } from '@concierge/contract';
import { readRendered } from '@concierge/turn';
import type { StreamEncoding } from '../sse/event-stream.ts';

/**
 * Reduces a turn's event to what a visitor may know: the text, that a tool runs, and how the turn ended. An agent's
 * tools, their arguments and their results are for the owner alone.
 */
function visitorEventOf({ type, data }: TurnEvent): VisitorEvent | null {
  switch (type) {
    case 'session': {
      return { type, data: { turnId: data.turnId } };
    }
    case 'text_delta': {
      return { type, data };
    }
    case 'text_reset': {
      return { type, data: { all: data.reason === 'stream_lost' } };
    }
    case 'tool_result': {
      return { type: 'step', data: {} };
    }
    case 'done': {
      return { type, data: { finishReason: data.finishReason } };
    }
    case 'error': {
      return { type, data: { code: data.code, message: data.message, retryable: data.retryable } };
    }
    case 'tool_call_start':
    case 'tool_call_progress':
    case 'tool_call_end': {
      return null;
    }
  }
}

/** Rendered events in, a visitor's out. Each keeps its id, so that a stream resumes after any of them. */
export const visitorEncoding: StreamEncoding = {
  encode: (sse) =>
    sse
      .split('\n\n')
      .map((block) => encodeBlock(block))
      .join(''),
  cutOff: () => '',
};

function encodeBlock(block: string): string {
  const [event] = readRendered(block);
  const shown = event === undefined ? null : visitorEventOf(event);
  if (shown === null) return '';
  return encodeServerSentEvent(shown.type, JSON.stringify(shown.data), /\nid: (?<id>.*)$/u.exec(block)?.groups?.['id'] ?? '');
}
