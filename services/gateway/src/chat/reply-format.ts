import type { Request } from 'express';

/**
 * How a chat request wants its reply: JSON only when it accepts JSON and no event stream (contract §3). What accepts
 * neither gets events.
 */
export function replyFormat(request: Pick<Request, 'accepts' | 'headers'>): 'events' | 'json' {
  if (request.headers.accept === undefined || request.accepts('text/event-stream') !== false) return 'events';
  return request.accepts('application/json') === false ? 'events' : 'json';
}
