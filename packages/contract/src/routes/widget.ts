import { z } from 'zod';
import { FinishReason } from '../turns/turn-event.ts';
import {
  WidgetAppearance,
  WidgetBody,
  WidgetConversation,
  WidgetDisplay,
  WidgetKey,
  WidgetMessageBody,
  WidgetReply,
  WidgetSecret,
  WidgetView,
} from '../channels/widget.ts';
import { UploadRef } from '../turns/chat.ts';
import { WidgetOpening } from '../channels/widget-team.ts';
import { chatErrors, chatHeaders } from './chat.ts';
import { limits } from '../limits.ts';
import { defineRoute } from './route.ts';
import { lastEventHeaders } from './turns.ts';

const owners = { tag: 'widget', auth: 'key', errors: [] } as const;

export const getWidget = defineRoute({
  ...owners,
  id: 'getWidget',
  method: 'get',
  path: '/api/widget',
  summary: 'Settings of the web widget',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'The settings, with the publishable key.', json: WidgetView } },
});

export const putWidget = defineRoute({
  ...owners,
  id: 'putWidget',
  audit: 'widget.update',
  method: 'put',
  path: '/api/widget',
  summary: 'Set up the web widget',
  description: 'Replaces all settings but the key and the secret: what is left out gets its default. In force with the next request.',
  scopes: ['admin'],
  body: { kind: 'json', schema: WidgetBody },
  answers: { 200: { description: 'The settings as they are now.', json: WidgetView } },
});

export const rotateWidgetKey = defineRoute({
  ...owners,
  id: 'rotateWidgetKey',
  audit: 'widget.rotate-key',
  method: 'post',
  path: '/api/widget/rotate-key',
  summary: 'Replace the publishable key',
  description: 'The old one stops at once: change the pages that carry it.',
  scopes: ['admin'],
  answers: { 200: { description: 'The settings, with the new key.', json: WidgetView } },
});

export const rotateWidgetSecret = defineRoute({
  ...owners,
  id: 'rotateWidgetSecret',
  audit: 'widget.rotate-secret',
  method: 'post',
  path: '/api/widget/rotate-secret',
  summary: 'Make the secret that signs sender tokens, or replace it',
  description: 'Tokens signed with the old one stop at once.',
  scopes: ['admin'],
  answers: { 201: { description: 'The secret; it is shown this once.', json: WidgetSecret } },
});

export const widgetScript = defineRoute({
  id: 'widgetScript',
  method: 'get',
  path: '/widget.js',
  tag: 'widget',
  summary: 'The script that a site loads',
  auth: 'none',
  scopes: [],
  headers: z.object({ 'if-none-match': z.string().max(256).optional() }),
  answers: {
    200: { description: 'JavaScript.', text: 'text/javascript; charset=utf-8', headers: { ETag: 'Its version.' } },
    304: { description: 'It still has the ETag of If-None-Match.', headers: { ETag: 'Its version.' } },
  },
  errors: ['overloaded'],
});

/** Where a preflight can see it, which carries no other header of the request. */
const key = WidgetKey.optional().meta({
  description: 'The publishable key. Browsers need it here: a preflight has no custom headers.',
});
const visitors = { tag: 'widget', auth: 'visitor', scopes: [] } as const;
const withKey = z.strictObject({ key });
const turnParams = z.object({ turnId: z.string().min(1).max(128) });

export const widgetSettings = defineRoute({
  id: 'widgetSettings',
  method: 'get',
  path: '/widget/settings',
  tag: 'widget',
  summary: 'How the widget looks',
  auth: 'widget',
  scopes: [],
  query: withKey,
  answers: {
    200: {
      description: 'What its owner has set.',
      json: z
        .object({
          appearance: WidgetAppearance,
          display: WidgetDisplay.meta({ description: 'Theme, place, button and texts by language.' }),
          requireSenderToken: z.boolean(),
          openings: z
            .array(WidgetOpening)
            .nullable()
            .meta({ description: 'When staff answers in the next eight days; null: at all times, as far as is known.' }),
        })
        .meta({ id: 'WidgetLook' }),
    },
  },
  errors: [],
});

export const sendWidgetMessage = defineRoute({
  ...visitors,
  id: 'sendWidgetMessage',
  method: 'post',
  path: '/widget/messages',
  summary: 'Send a message to cs as a visitor',
  description: 'The events are those of /api/cs without tool calls and figures: see `WidgetEventData`.',
  waitsForTurn: true,
  query: withKey,
  headers: chatHeaders,
  body: { kind: 'json', schema: WidgetMessageBody },
  answers: {
    200: {
      description: 'The reply: a stream of events, or one JSON object with `Accept: application/json`.',
      json: WidgetReply,
      events: true,
    },
  },
  errors: chatErrors,
});

export const sendWidgetFile = defineRoute({
  ...visitors,
  id: 'sendWidgetFile',
  method: 'post',
  path: '/widget/uploads',
  summary: 'Upload a file to attach to a message, as a visitor',
  description: `One file a request; types and sizes as of POST /api/uploads. A visitor may send ${String(limits.widgetFilesPerVisitorHour)} files an hour and ${String(limits.widgetBytesPerVisitorDay)} bytes in any 24 hours, all visitors of a tenant ${String(limits.widgetFilesPerHour)} and ${String(limits.widgetBytesPerDay)}, and those without a token, where the widget has a secret, ${String(limits.widgetUnsignedFilesPerHour)} and ${String(limits.widgetUnsignedBytesPerDay)} of these. Refused where the owner allows visitors no files.`,
  query: withKey,
  body: { kind: 'files', schema: z.object({ file: z.array(z.string().meta({ format: 'binary' })).length(1) }) },
  answers: { 201: { description: 'What a message names it by.', json: UploadRef } },
  errors: [],
});

export const followWidgetTurn = defineRoute({
  ...visitors,
  id: 'followWidgetTurn',
  method: 'get',
  path: '/widget/turns/{turnId}/events',
  summary: 'Follow or resume the reply to a message of one’s own',
  waitsForTurn: true,
  params: turnParams,
  query: withKey,
  headers: lastEventHeaders,
  answers: {
    200: { description: 'The events of the turn.', events: true },
    204: { description: 'The turn has ended, and `Last-Event-ID` is its last event.' },
  },
  errors: ['not_found'],
});

export const cancelWidgetTurn = defineRoute({
  ...visitors,
  id: 'cancelWidgetTurn',
  method: 'post',
  path: '/widget/turns/{turnId}/cancel',
  summary: 'Stop the reply to a message of one’s own',
  params: turnParams,
  query: withKey,
  answers: { 202: { description: 'It ends in `done` with `finishReason: cancelled`, if it has not ended yet.' } },
  errors: ['not_found'],
});

export const widgetConversation = defineRoute({
  ...visitors,
  id: 'widgetConversation',
  method: 'get',
  path: '/widget/conversation',
  summary: 'The conversation so far, the newest messages',
  query: withKey,
  headers: z.object({ 'if-none-match': z.string().max(256).optional() }),
  answers: {
    200: { description: 'Messages, the oldest first.', json: WidgetConversation, headers: { ETag: 'Its version.' } },
    304: { description: 'It still has the ETag of If-None-Match.', headers: { ETag: 'Its version.' } },
  },
  errors: [],
});

/** The data of each event of a visitor's stream, by its type. */
export const widgetEventData = {
  session: z.object({ turnId: z.string() }),
  text_delta: z.object({ delta: z.string() }),
  /** The agent does something, or has done it: its text so far stands, and what follows is a new paragraph. */
  step: z.object({}),
  /** `all`: everything so far is void and comes again; else the text since the last `step` (or the start). */
  text_reset: z.object({ all: z.boolean() }),
  done: z.object({ finishReason: FinishReason }),
  error: z.object({ code: z.string(), message: z.string(), retryable: z.boolean() }),
} as const;
export type VisitorEvent = {
  readonly [Type in keyof typeof widgetEventData]: { readonly type: Type; readonly data: z.infer<(typeof widgetEventData)[Type]> };
}[keyof typeof widgetEventData];
