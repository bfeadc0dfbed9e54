import { AppError, type WidgetMessageBody, type WidgetReply, limits } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnReceipt, Turns, RateLimits } from '@concierge/turn';
import type { MessageAcceptance } from '../chat/message-acceptance.ts';
import { streamed, type Call, type Handlers } from '../http/call.ts';
import { goneSignal, readRequestContext } from '../http/request-context.ts';
import { takeRequest } from '../http/rate-window.ts';
import { storeOne, type UploadOptions } from '../upload/uploads.ts';
import { replyFormat, type Replies } from '../sse/replies.ts';
import { viewConversation, viewOpenings, visitorEncoding } from './visitor-views.ts';
import type { VisitorCaller } from './widget-caller.ts';
import type { WidgetScript } from './widget-script.ts';

export interface WidgetOptions {
  readonly turns: Turns;
  readonly acceptance: MessageAcceptance;
  readonly replies: Replies;
  readonly storing: UploadOptions;
  readonly widget: { readonly limits: WidgetLimits; readonly script: WidgetScript };
}

type WidgetHandlers = Pick<
  Handlers,
  | 'widgetScript'
  | 'widgetSettings'
  | 'sendWidgetMessage'
  | 'sendWidgetFile'
  | 'followWidgetTurn'
  | 'cancelWidgetTurn'
  | 'widgetConversation'
>;

/** The requests of pages on other sites: for cs alone, and each visitor for their own conversation alone. */
export function widgetHandlers(options: WidgetOptions): WidgetHandlers {
  const { turns, widget } = options;
  return {
    widgetScript: async ({ request, response }) => {
      await widget.script.send(request, response);
      return streamed;
    },
    widgetSettings: async ({ caller: { widget: settings, scope } }) => {
      const { appearance, display, requireSenderToken, team } = settings;
      const openings = await viewOpenings(scope, team);
      return { kind: 'answer', status: 200, json: { appearance, display, requireSenderToken, openings } };
    },
    sendWidgetMessage: async (call) => {
      await widget.limits.takeMessage(call.caller);
      refuseWhenFull(options, call.caller);
      const { turnId, replayed } = await accept(options, call.caller, { ...call.body, key: call.headers['idempotency-key'] });
      readRequestContext(call.response).turnId = turnId;
      if (replayed) call.response.setHeader('Idempotency-Replayed', 'true');
      if (replyFormat(call.request) === 'json') return { kind: 'answer', status: 200, json: await awaitWidgetReply(options, call, turnId) };
      return follow(options, call, { turnId, after: null });
    },
    sendWidgetFile: async ({ caller, request, response }) => {
      if (caller.widget.display.files === 'refused') throw new AppError('invalid_request', 'No files can be sent here.');
      await widget.limits.takeFile(caller);
      const admit = async (bytes: number): Promise<void> => widget.limits.takeBytes(caller, bytes);
      return { kind: 'answer', status: 201, json: await storeOne(request, response, { ...caller, storing: options.storing, admit }) };
    },
    followWidgetTurn: async (call) => {
      const { turnId } = call.params;
      await widget.limits.takeRead(call.caller);
      await assertOwn(turns, call.caller, turnId);
      refuseWhenFull(options, call.caller);
      readRequestContext(call.response).turnId = turnId;
      const given = call.headers['last-event-id'] ?? '';
      const position = { turnId, after: given === '' ? null : given };
      if (await options.replies.isOver({ scope: call.caller.scope, ...position })) return { kind: 'answer', status: 204 };
      return follow(options, call, position);
    },
    cancelWidgetTurn: async ({ caller, params }) => {
      await widget.limits.takeRead(caller);
      await assertOwn(turns, caller, params.turnId);
      await turns.cancel(caller.scope, params.turnId);
      return { kind: 'answer', status: 202 };
    },
    widgetConversation: async ({ caller, headers }) => {
      await widget.limits.takeRead(caller);
      const { tag, conversation } = await viewConversation(caller, headers['if-none-match']);
      if (conversation === null) return { kind: 'answer', status: 304, headers: { ETag: tag } };
      return { kind: 'answer', status: 200, json: conversation, headers: { ETag: tag } };
    },
  };
}

type VisitorCall = Pick<Call, 'request' | 'response'> & { readonly caller: VisitorCaller };

async function accept(
  { acceptance }: WidgetOptions,
  { scope, sender, sessionId, name }: VisitorCaller,
  { message, attachments, key }: WidgetMessageBody & { readonly key: string | undefined },
): Promise<TurnReceipt> {
  await assertOwnFiles(scope, sender, attachments);
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
      text: message,
      attachments: attachments.map((id) => ({ id })),
      busy: 'queue',
    },
  );
}

/** One answer, whether there is no such file or it is not this visitor's. @throws AppError `invalid_request` */
async function assertOwnFiles(scope: TenantScope, sender: string, ids: readonly string[]): Promise<void> {
  for (const [index, id] of ids.entries()) {
    if (await scope.uploads.isFrom(id, sender)) continue;
    throw new AppError('invalid_request', undefined, {
      errors: [{ path: `attachments.${String(index)}`, message: 'is not an upload of this tenant' }],
    });
  }
}

/** One and the same answer, whether there is no such turn or it is another visitor's. @throws AppError `not_found` */
async function assertOwn(turns: Pick<Turns, 'find'>, { scope, sessionId }: VisitorCaller, turnId: string): Promise<void> {
  const turn = await turns.find(scope, turnId);
  if (turn?.contact_id !== sessionId) throw new AppError('not_found', 'There is no such turn.');
}

function buildStreamKey({ scope, sessionId }: VisitorCaller): string {
  return `widget:${scope.tenantId}:${sessionId}`;
}

function refuseWhenFull({ replies }: WidgetOptions, caller: VisitorCaller): void {
  replies.refuseWhenFull(buildStreamKey(caller), 'visitor');
}

function follow(
  { replies }: WidgetOptions,
  { response, caller }: VisitorCall,
  { turnId, after }: { readonly turnId: string; readonly after: string | null },
): typeof streamed {
  replies.stream(response, { scope: caller.scope, turnId, keyId: buildStreamKey(caller), after, encoding: visitorEncoding });
  return streamed;
}

async function awaitWidgetReply({ replies }: WidgetOptions, { caller, response }: VisitorCall, turnId: string): Promise<WidgetReply> {
  const { reply, finishReason } = await replies.fold({ scope: caller.scope, turnId }, goneSignal(response));
  return { turnId, reply, finishReason };
}

/** Without a sender token, of a widget that has a secret for them: one browser may be any number of such visitors. */
function isUnsigned({ sender, widget }: VisitorCaller): boolean {
  return widget.secret !== null && sender.startsWith('visitor:');
}

/**
 * Limits visitors' requests, on top of the tenant's limits. The visitor's limit comes first: one who floods does not
 * use up the quota of all visitors together. Of the room for files, visitors without a token take no more than a part.
 */
export class WidgetLimits {
  readonly #rateLimits: RateLimits;

  constructor(rateLimits: RateLimits) {
    this.#rateLimits = rateLimits;
  }

  /** @throws AppError `rate_limited`, `overloaded` */
  async takeMessage({ scope, sessionId }: VisitorCaller): Promise<void> {
    await this.#take(`${scope.tenantId}:widget:${sessionId}`, limits.widgetMessagesPerVisitorMinute);
    await this.#take(`${scope.tenantId}:widget`, limits.widgetMessagesPerMinute);
  }

  /** @throws AppError `rate_limited`, `overloaded` */
  async takeFile(caller: VisitorCaller): Promise<void> {
    const { scope, sessionId } = caller;
    await this.#take(`${scope.tenantId}:widget-files:${sessionId}`, limits.widgetFilesPerVisitorHour, 'hour');
    if (isUnsigned(caller)) await this.#take(`${scope.tenantId}:widget-files-unsigned`, limits.widgetUnsignedFilesPerHour, 'hour');
    await this.#take(`${scope.tenantId}:widget-files`, limits.widgetFilesPerHour, 'hour');
  }

  /** Of a file that will be kept. @throws AppError `rate_limited`, `overloaded` */
  async takeBytes(caller: VisitorCaller, weight: number): Promise<void> {
    const { scope, sessionId } = caller;
    const take = async (name: string, limit: number): Promise<void> =>
      takeRequest(this.#rateLimits, { name: `${scope.tenantId}:${name}`, limit, per: 'day', weight });
    await take(`widget-bytes:${sessionId}`, limits.widgetBytesPerVisitorDay);
    if (isUnsigned(caller)) await take('widget-bytes-unsigned', limits.widgetUnsignedBytesPerDay);
    await take('widget-bytes', limits.widgetBytesPerDay);
  }

  /** @throws AppError `rate_limited`, `overloaded` */
  async takeRead({ scope, sessionId }: VisitorCaller): Promise<void> {
    await this.#take(`${scope.tenantId}:widget-reads:${sessionId}`, limits.widgetReadsPerVisitorMinute);
  }

  async #take(name: string, limit: number, per: 'minute' | 'hour' = 'minute'): Promise<void> {
    await takeRequest(this.#rateLimits, { name, limit, per });
  }
}
