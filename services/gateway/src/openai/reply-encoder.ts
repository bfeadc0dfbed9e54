import type { TurnEvent } from '@concierge/contract';
import { readRendered } from '@concierge/turn';
import type { StreamEncoding } from '../sse/event-stream.ts';

/** One message of an event stream. `event` where the protocol names its events. */
export interface Frame {
  readonly event?: string;
  readonly data: object | '[DONE]';
}

/** Encodes turn events in the format of another protocol. */
export interface ReplyEncoder {
  encode(event: TurnEvent): readonly Frame[];
  /** What is sent when the stream ends before the turn does. */
  cutOff(): readonly Frame[];
}

/** An encoder as an event stream uses it: rendered text in, rendered text out. */
export function encodingOf(encoder: ReplyEncoder): StreamEncoding {
  return {
    encode: (sse) =>
      readRendered(sse)
        .flatMap((event) => encoder.encode(event).map((frame) => render(frame)))
        .join(''),
    cutOff: () =>
      encoder
        .cutOff()
        .map((frame) => render(frame))
        .join(''),
  };
}

function render({ event, data }: Frame): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  return `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}
