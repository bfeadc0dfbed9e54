import { turnEventData, type TurnEvent } from '@concierge/contract';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { ChatFailure } from './chat-failure.ts';

export interface ReadEvent {
  readonly id: string | null;
  readonly event: TurnEvent;
}

/** Event types that this page does not know are left out: a newer gateway may say more. */
export function parseTurnEvent({ event: type = '', data }: Pick<EventSourceMessage, 'event' | 'data'>): TurnEvent | null {
  const body: unknown = JSON.parse(data);
  switch (type) {
    case 'session': {
      return { type, data: turnEventData.session.parse(body) };
    }
    case 'text_delta': {
      return { type, data: turnEventData.text_delta.parse(body) };
    }
    case 'tool_call_start': {
      return { type, data: turnEventData.tool_call_start.parse(body) };
    }
    case 'tool_call_progress': {
      return { type, data: turnEventData.tool_call_progress.parse(body) };
    }
    case 'tool_call_end': {
      return { type, data: turnEventData.tool_call_end.parse(body) };
    }
    case 'tool_result': {
      return { type, data: turnEventData.tool_result.parse(body) };
    }
    case 'text_reset': {
      return { type, data: turnEventData.text_reset.parse(body) };
    }
    case 'done': {
      return { type, data: turnEventData.done.parse(body) };
    }
    case 'error': {
      return { type, data: turnEventData.error.parse(body) };
    }
    default: {
      return null;
    }
  }
}

function understand(message: EventSourceMessage): TurnEvent | null {
  try {
    return parseTurnEvent(message);
  } catch (error) {
    throw new ChatFailure('The service said something that this page does not understand. Reload the page.', {
      status: 200,
      code: 'unexpected_answer',
      cause: error,
    });
  }
}

/**
 * Reads an event stream to its end. `onBytes` is called for everything that arrives, heartbeats included. Rejects when the
 * connection breaks and when an event is not what the interface promises.
 */
export async function readTurnEvents(
  body: ReadableStream<Uint8Array>,
  { onEvent, onBytes }: { readonly onEvent: (read: ReadEvent) => void; readonly onBytes: () => void },
): Promise<void> {
  const parser = createParser({
    onEvent: (message) => {
      const event = understand(message);
      if (event !== null) onEvent({ id: message.id ?? null, event });
    },
  });
  const decoder = new TextDecoder();
  // Not `for await`: Safari's streams cannot be iterated.
  const reader = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    onBytes();
    parser.feed(decoder.decode(read.value, { stream: true }));
  }
}
