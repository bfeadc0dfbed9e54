import { AppError, type WidgetReply } from '@concierge/contract';
import type { TurnReceipt, Turns } from '@concierge/turn';
import { awaitReply, type Replies } from '../chat/await-reply.ts';
import type { MessageAcceptance } from '../chat/message-acceptance.ts';
import { replyFormat } from '../chat/reply-format.ts';
import { streamed, type Call, type Handlers } from '../http/call.ts';
import { readRequestContext } from '../http/exchange.ts';
import { tellConversation } from './widget-conversation.ts';
import { visitorEncoding } from './visitor-events.ts';
import type { VisitorCaller } from './visitor.ts';
import type { WidgetLimits } from './widget-limits.ts';
import type { WidgetScript } from './widget-script.ts';

export interface WidgetOptions {
  readonly turns: Turns;
  readonly acceptance: MessageAcceptance;
  readonly replies: Replies;
  readonly widget: { readonly limits: WidgetLimits; readonly script: WidgetScript };
}

type WidgetHandlers = Pick<
  Handlers,
  'widgetScript' | 'widgetSettings' | 'sendWidgetMessage' | 'followWidgetTurn' | 'cancelWidgetTurn' | 'widgetConversation'
>;

/** The requests of pages on other sites: for cs alone, and each visitor for their own conversation alone. */
export function widgetHandlers(options: WidgetOptions): WidgetHandlers {
  const { turns, widget } = options;
  return {
    widgetScript: async ({ request, response }) => {
      await widget.script.send(request, response);
      return streamed;
    },
    widgetSettings: ({ caller }) => {
      const { appearance, requireSenderToken } = caller.widget;
      return { kind: 'answer', status: 200, json: { appearance, requireSenderToken } };
    },
    sendWidgetMessage: async (call) => {
      await widget.limits.takeMessage(call.caller);
      refuseWhenFull(options, call.caller);
      const { turnId, replayed } = await accept(options, call.caller, { message: call.body.message, key: call.headers['idempotency-key'] });
      readRequestContext(call.response).turnId = turnId;
      if (replayed) call.response.setHeader('Idempotency-Replayed', 'true');
      if (replyFormat(call.request) === 'json') return { kind: 'answer', status: 200, json: await replyOf(options, call, turnId) };
      return follow(options, call, { turnId, after: null });
    },
    followWidgetTurn: async (call) => {
      const { turnId } = call.params;
      await widget.limits.takeRead(call.caller);
      await assertOwn(turns, call.caller, turnId);
      refuseWhenFull(options, call.caller);
      readRequestContext(call.response).turnId = turnId;
      const given = call.headers['last-event-id'] ?? '';
      const place = { turnId, after: given === '' ? null : given };
      if (await options.replies.eventStreams.isOver({ scope: call.caller.scope, ...place })) return { kind: 'answer', status: 204 };
      return follow(options, call, place);
    },
    cancelWidgetTurn: async ({ caller, params }) => {
      await widget.limits.takeRead(caller);
      await assertOwn(turns, caller, params.turnId);
      await turns.cancel(caller.scope, params.turnId);
      return { kind: 'answer', status: 202 };
    },
    widgetConversation: async ({ caller, headers }) => {
      await widget.limits.takeRead(caller);
      const { tag, conversation } = await tellConversation(caller, headers['if-none-match']);
      if (conversation === null) return { kind: 'answer', status: 304, headers: { ETag: tag } };
      return { kind: 'answer', status: 200, json: conversation, headers: { ETag: tag } };
    },
  };
}

type VisitorCall = Pick<Call, 'request' | 'response'> & { readonly caller: VisitorCaller };

async function accept(
  { acceptance }: WidgetOptions,
  { scope, sender, sessionId, name }: VisitorCaller,
  { message, key }: { readonly message: string; readonly key: string | undefined },
): Promise<TurnReceipt> {
  if (name !== null) await scope.contacts.remember({ sender, displayName: name });
  return await acceptance.accept(
    // None of the tenant's keys sent it, so a key for cs alone may not see it.
    { scope, keyId: null, dedupeId: key === undefined ? null : `widget:${sessionId}:${key}` },
    {
      agent: 'cs',
      authority: 'cs',
      channel: 'web',
      sender,
      contactId: null,
      message,
      attachments: [],
      busy: 'queue',
    },
  );
}

/** One and the same answer, whether there is no such turn or it is another visitor's. @throws AppError `not_found` */
async function assertOwn(turns: Pick<Turns, 'find'>, { scope, sessionId }: VisitorCaller, turnId: string): Promise<void> {
  const turn = await turns.find(scope, turnId);
  if (turn?.contact_id !== sessionId) throw new AppError('not_found', 'There is no such turn.');
}

function streamKeyOf({ scope, sessionId }: VisitorCaller): string {
  return `widget:${scope.tenantId}:${sessionId}`;
}

function refuseWhenFull({ replies: { eventStreams } }: WidgetOptions, caller: VisitorCaller): void {
  eventStreams.refuseWhenFull(streamKeyOf(caller), 'visitor');
}

function follow(
  { replies: { eventStreams } }: WidgetOptions,
  { response, caller }: VisitorCall,
  { turnId, after }: { readonly turnId: string; readonly after: string | null },
): typeof streamed {
  eventStreams.serve(response, { scope: caller.scope, turnId, keyId: streamKeyOf(caller), after, encoding: visitorEncoding });
  return streamed;
}

async function replyOf({ replies }: WidgetOptions, call: VisitorCall, turnId: string): Promise<WidgetReply> {
  const { reply, finishReason } = await awaitReply(replies, call, turnId);
  return { turnId, reply, finishReason };
}
