import { AppError, type ChatReply } from '@concierge/contract';
import type { TurnStreams } from '@concierge/turn';
import type { TenantScope } from '@concierge/tenant';
import type { Request } from 'express';
import type { Call } from '../http/call.ts';
import type { Drain } from '../http/drain.ts';
import { goneSignal } from '../http/request-context.ts';
import type { EventStreams } from '../sse/event-streams.ts';

/** Answers with a turn: as events, or folded into one reply; both end when the service stops. */
export interface Replies {
  readonly turnStreams: Pick<TurnStreams, 'fold'>;
  readonly eventStreams: EventStreams;
  readonly drain: Drain;
}

/**
 * The whole reply of a turn, once it has ended. A client that goes away ends the waiting, never the turn.
 * @throws AppError of a turn that failed
 */
export async function awaitReply(
  { turnStreams, drain }: Pick<Replies, 'turnStreams' | 'drain'>,
  { response, caller }: Pick<Call, 'response'> & { readonly caller: { readonly scope: TenantScope } },
  turnId: string,
): Promise<ChatReply> {
  const folded = await turnStreams.fold(caller.scope, turnId, AbortSignal.any([goneSignal(response), drain.ended]));
  if (folded.kind === 'error') throw new AppError(folded.error.code, folded.error.message);
  return folded.reply;
}

/**
 * How a chat request wants its reply: JSON only when it accepts JSON and no event stream (contract §3). What accepts
 * neither gets events.
 */
export function replyFormat(request: Pick<Request, 'accepts' | 'headers'>): 'events' | 'json' {
  if (request.headers.accept === undefined || request.accepts('text/event-stream') !== false) return 'events';
  return request.accepts('application/json') === false ? 'events' : 'json';
}
