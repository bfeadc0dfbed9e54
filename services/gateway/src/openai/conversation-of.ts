import { AppError, ContactId, type ChatCompletionBody, type ResponseBody } from '@concierge/contract';
import type { Turns } from '@concierge/turn';
import { viewerOf } from '../chat/turn-viewer.ts';
import type { Caller } from '../http/call.ts';

const responseId = /^resp_(?<turnId>t_[0-9a-f]{32})$/u;

/** The conversation that a request goes on with, by its id; null for none. @throws AppError `invalid_request` */
export function conversationOf({ conversation, metadata }: Pick<ChatCompletionBody, 'conversation' | 'metadata'>): string | null {
  const named = typeof conversation === 'string' ? conversation : (conversation?.id ?? null);
  const noted = metadata?.['contact_id'] ?? null;
  if (noted === null) return named;
  const parsed = ContactId.safeParse(noted);
  if (!parsed.success) throw refused('metadata.contact_id', 'is not a contact_id');
  if (named !== null && named !== parsed.data) throw refused('metadata.contact_id', 'is another one than conversation');
  return parsed.data;
}

export interface PreviousOptions {
  readonly turns: Pick<Turns, 'find'>;
}

/**
 * The same for a response, which may name the one before.
 * @throws AppError `not_found` for one that this key may not see
 */
export async function conversationOfResponse(
  { turns }: PreviousOptions,
  { scope, key }: Caller,
  body: ResponseBody,
): Promise<string | null> {
  const { previous_response_id: previous } = body;
  if (previous == null) return conversationOf(body);
  const turnId = responseId.exec(previous)?.groups?.['turnId'];
  const turn = turnId === undefined ? undefined : await turns.find(scope, turnId, viewerOf(key));
  if (turn !== undefined) return turn.contact_id;
  throw new AppError('not_found', undefined, { errors: [{ path: 'previous_response_id', message: 'there is no such response' }] });
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
