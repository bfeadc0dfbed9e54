import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { CanonicalChannel } from '../channels/channel.ts';
import { ChannelAddress } from '../channels/channel-message.ts';
import { AgentName } from '../tenants/tenant.ts';
import { ModelUsage, TurnRecord, TurnView, type TurnOrigin } from './turn.ts';
import { limits } from '../limits.ts';
import { UploadRef } from './chat.ts';
import { openList } from '../values/stored.ts';

const base = { id: z.string(), turnId: z.string(), at: z.iso.datetime() };

/**
 * What the owner typed and, apart, what the model was sent: dynamic context included, byte for byte, so that prompt
 * caches still match. `heartbeat`: HEARTBEAT, where this message shows it, to be put into the context of `sent`; empty
 * where the message states that it is empty now. Compaction leaves the newest copy.
 */
export const UserMessage = z.object({
  ...base,
  role: z.literal('user'),
  text: z.string(),
  sent: z.string(),
  heartbeat: z.string().optional(),
  attachments: z.array(UploadRef).optional(),
  /** The text of each of several messages that were answered together, so that one can be retracted by itself. */
  said: z.array(z.object({ turnId: z.string(), text: z.string(), uploads: z.array(z.string()) })).optional(),
});
/** What a provider sends along with a tool call and wants back unchanged, by its name: Google's `thought_signature`. */
export const CallExtra = z.record(z.string(), z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])));
export type CallExtra = z.infer<typeof CallExtra>;
export const ToolCall = z.object({
  id: z.string(),
  name: z.string(),
  /** As the model wrote it; may be no JSON at all. */ arguments: z.string(),
  /** For the model that made the call alone: no view has it. */ extra: CallExtra.optional(),
});
export type ToolCall = z.infer<typeof ToolCall>;
export const AssistantMessage = z.object({
  ...base,
  role: z.literal('assistant'),
  text: z.string(),
  toolCalls: z.array(ToolCall).optional(),
  model: z.string().optional(),
  /** Thoughts before its calls, which some providers want back with them. For this model alone: no view has it. */
  reasoning: z.string().optional(),
  /** Cut by a cancel or an error. */ partial: z.literal(true).optional(),
  /** The staff member who wrote it in the agent's place. */ by: Actor.optional(),
});
export const ToolMessage = z.object({
  ...base,
  role: z.literal('tool'),
  callId: z.string(),
  name: z.string(),
  output: z.string(),
  isError: z.boolean(),
  /** Images that the tool showed to the model: references, never the bytes. */
  attachments: z.array(UploadRef).optional(),
  /** Compaction: the model is sent a short note instead of the output from now on. */
  pruned: z.literal(true).optional(),
});
export const SessionMessage = z.discriminatedUnion('role', [UserMessage, AssistantMessage, ToolMessage]);
export type UserMessage = z.infer<typeof UserMessage>;
export type AssistantMessage = z.infer<typeof AssistantMessage>;
export type ToolMessage = z.infer<typeof ToolMessage>;
export type SessionMessage = z.infer<typeof SessionMessage>;

/**
 * Stands for the messages that compaction moved to the history file, and for HEARTBEAT where no message after them
 * shows it.
 */
export const SessionSummary = z.object({
  text: z.string(),
  messages: z.int().nonnegative(),
  updatedAt: z.iso.datetime(),
  heartbeat: z.string().optional(),
});
export type SessionSummary = z.infer<typeof SessionSummary>;

/** What began a session; it does not change with later messages. */
export const SessionOrigin = openList(
  z.enum(['user', 'channel', 'schedule', 'heartbeat', 'subagent', 'notice']).meta({
    id: 'SessionOrigin',
    description:
      'What began the session. `user`: a message through the API, the console or the web widget; `channel`: a message from a channel; `schedule` and `heartbeat`: a run of one; `subagent`: the task of another turn; `notice`: the service tells the agent that a conversation waits for staff.',
  }),
);
export type SessionOrigin = z.infer<typeof SessionOrigin>;

/** The origin of a session, by that of its first turn. */
export const sessionOrigins = {
  api: 'user',
  webhook: 'channel',
  schedule: 'schedule',
  heartbeat: 'heartbeat',
  subagent: 'subagent',
  handoff: 'notice',
  // Both need a conversation that is there already.
  person: 'user',
  retraction: 'channel',
} as const satisfies Record<z.infer<typeof TurnOrigin>, SessionOrigin>;

/** The conversation that a session goes on from, and the last turn of it that is in both. */
export const SessionFork = z
  .object({ id: z.string(), turnId: z.string() })
  .meta({ id: 'SessionFork', description: 'Begun with the messages of another conversation, up to a turn of it.' });
export type SessionFork = z.infer<typeof SessionFork>;

/**
 * tenants/<id>/sessions/<sessionId>.json. `revision` rises by one with every publication; `turns` names the turns this
 * file contains, so that one that was saved but not announced is announced, not run again.
 */
export const Session = z.object({
  version: z.literal(1),
  id: z.string(),
  agent: AgentName,
  channel: CanonicalChannel,
  sender: z.string().nullable(),
  /** Missing in files of earlier versions; loading a session adds it. */
  origin: SessionOrigin.optional(),
  /** Its first messages are another session's, with the ids of that one's turns. */
  forkedFrom: SessionFork.optional(),
  /** Where its last message from a channel came from. */
  channelAddress: ChannelAddress.optional(),
  revision: z.int().nonnegative(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  title: z.string(),
  /** Messages of the whole conversation, history included. */
  messageCount: z.int().nonnegative(),
  summary: SessionSummary.nullable(),
  messages: z.array(SessionMessage),
  turns: z.array(TurnRecord),
  /**
   * The provider's own count for the last call, and how many of `messages` it covered: what compaction is decided on.
   */
  contextTokens: z.object({ tokens: z.int().nonnegative(), messages: z.int().nonnegative() }).nullable(),
});
export type Session = z.infer<typeof Session>;

/** The same session as its file spells it: the address is stored as `chatApp`. */
export const StoredSession = Session.omit({ channelAddress: true }).extend({ chatApp: ChannelAddress.optional() });
export type StoredSession = z.infer<typeof StoredSession>;

/** One line of sessions/<sessionId>.history.jsonl: what compaction took out of the session file. */
export const HistoryLine = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('message'), message: SessionMessage }),
  z.object({ kind: z.literal('turn'), turn: TurnRecord }),
]);
export type HistoryLine = z.infer<typeof HistoryLine>;

/** Who has a conversation, and how it stands. */
export const SessionState = z.enum(['agent', 'waiting', 'with_staff', 'failed']).meta({
  id: 'SessionState',
  description:
    '`agent`: the agent answers. `waiting`: it is handed over, and the contact has the last word. `with_staff`: it is handed over, and staff answered last. `failed`: the agent has it, and its last turn failed.',
});
export type SessionState = z.infer<typeof SessionState>;

/** The last words of either side, at most 200 characters of them. */
export const LastMessage = z
  .object({ from: z.enum(['contact', 'agent', 'person']), text: z.string(), at: z.iso.datetime() })
  .meta({ id: 'LastMessage' });
export type LastMessage = z.infer<typeof LastMessage>;

/** The newest message of either side, with all its words; null where there is none. */
export function findLastMessage(messages: readonly SessionMessage[]): LastMessage | null {
  for (const message of messages.toReversed()) {
    if (message.role === 'tool') continue;
    const text = readWords(message);
    if (text === null) continue;
    const from = message.role === 'user' ? 'contact' : message.by === undefined ? 'agent' : 'person';
    return { from, text, at: message.at };
  }
  return null;
}

/** An agent's message without words only calls tools. A contact's is one: a picture, a voice message, a place. */
function readWords(message: UserMessage | AssistantMessage): string | null {
  const words = message.text.trim();
  if (words !== '') return words;
  return message.role === 'user' ? (message.attachments ?? []).map(({ name }) => name).join(', ') : null;
}

/** sessions/.labels/<sessionId>.json: what the owner has set about a conversation. */
export const SessionLabel = z.object({
  version: z.literal(1),
  /** Null: its own. */
  title: z.string().nullable(),
  pinned: z.boolean(),
  updatedAt: z.iso.datetime(),
});
export type SessionLabel = z.infer<typeof SessionLabel>;

/** PATCH /api/sessions/{id}. */
export const SessionLabelBody = z
  .strictObject({
    title: z.string().trim().min(1).max(limits.sessionTitleMaxCharacters).nullable().optional().meta({
      description: 'Another name for the conversation; null gives it its own again.',
    }),
    pinned: z.boolean().optional().meta({ description: 'Whether it stands above the others in the console.' }),
  })
  .meta({ id: 'SessionLabelBody' });
export type SessionLabelBody = z.infer<typeof SessionLabelBody>;

export const SessionLabelView = z
  .object({
    id: z.string(),
    title: z.string(),
    pinned: z.boolean().meta({ description: 'It stands above the others in the console.' }),
  })
  .meta({ id: 'SessionLabel', description: 'The name of a conversation as lists show it, and whether it is pinned.' });

/** POST /api/sessions/{id}/fork. */
export const SessionForkBody = z
  .strictObject({
    turnId: z.string().min(1).max(128).meta({ description: 'An ended turn of the conversation.' }),
    includesTurn: z.boolean().default(true).meta({
      description: 'False: only what came before the turn, so that it can be asked differently, or again.',
    }),
  })
  .meta({ id: 'SessionForkBody' });
export type SessionForkBody = z.infer<typeof SessionForkBody>;

export const SessionListItem = z
  .object({
    id: z.string(),
    updatedAt: z.iso.datetime(),
    agent: AgentName,
    channel: CanonicalChannel,
    origin: SessionOrigin,
    title: z.string(),
    messageCount: z.int().nonnegative(),
    sender: z.string().nullable().meta({ description: 'The id of its contact; null where it has none.' }),
    contactName: z.string().nullable().meta({ description: 'What the channel or the owner’s system calls the contact.' }),
    lastMessage: LastMessage.nullable(),
    state: SessionState,
    pinned: z.boolean().meta({ description: 'It stands above the others in the console.' }),
    assignee: z.string().nullable().meta({ description: 'The staff member who looks after it; null: no one in particular.' }),
  })
  .meta({ id: 'SessionListItem' });
export type SessionListItem = z.infer<typeof SessionListItem>;

const {
  id,
  sender: _sender,
  contactName: _name,
  lastMessage: _last,
  state: _state,
  pinned: _pinned,
  assignee: _assignee,
  ...listed
} = SessionListItem.shape;

/** GET /api/sessions/{id}: the whole conversation, history first. */
export const SessionView = z
  .object({
    id,
    createdAt: z.iso.datetime(),
    ...listed,
    forkedFrom: SessionFork.optional().meta({ description: 'The conversation that it goes on with; missing where it began by itself.' }),
    messages: z.array(
      z.discriminatedUnion('role', [
        UserMessage.omit({ sent: true, heartbeat: true, said: true }),
        AssistantMessage.omit({ reasoning: true }).extend({ toolCalls: z.array(ToolCall.omit({ extra: true })).optional() }),
        ToolMessage,
      ]),
    ),
  })
  .meta({ id: 'Session' });
export type SessionView = z.infer<typeof SessionView>;

/** The record of a turn as a page of its conversation shows it: with its steps and its price. */
export const SessionTurn = TurnView.omit({ contact_id: true, agent: true, channel: true, waitsFor: true, deliveries: true }).meta({
  id: 'SessionTurn',
});
export type SessionTurn = z.infer<typeof SessionTurn>;

/** GET /api/sessions/{id}?limit: the last turns of a conversation, or those before a message. */
export const SessionPage = SessionView.extend({
  turns: z.array(SessionTurn).meta({ description: 'Ended turns of these messages.' }),
  before: z.string().nullable().meta({ description: 'For the page before this one; null when this is the first.' }),
}).meta({ id: 'SessionPage' });
export type SessionPage = z.infer<typeof SessionPage>;

/**
 * What a turn has finished, in order; the journal a recovering attempt folds. Internal: never sent to a client.
 * `prompt` first; then per round `assistant`, and for each of its calls `intent` and `result`; `compaction` between
 * rounds; `nested_intent` and `nested_result` while a command runs. Where no model is called, `said` is all that
 * follows, or all there is.
 */
export const TurnStep = z.discriminatedUnion('kind', [
  /** `joined`: turns that waited behind this one and are answered with it; their texts are part of the message. */
  z.object({ kind: z.literal('prompt'), message: UserMessage, joined: z.array(z.string()).optional() }),
  z.object({
    kind: z.literal('assistant'),
    message: AssistantMessage,
    finishReason: z.enum(['stop', 'tool_calls', 'length', 'content_filter']),
    usage: ModelUsage,
    startedAtMs: z.number(),
    firstTextAtMs: z.number().nullable(),
    durationMs: z.number(),
    /** Attempts that failed before this reply. */
    failedAttempts: z.int().positive().optional(),
  }),
  /** Text in the agent's place that no model wrote: a staff member's, or the service's own answer to a command. */
  z.object({ kind: z.literal('said'), message: AssistantMessage }),
  z.object({ kind: z.literal('intent'), callId: z.string(), name: z.string() }),
  /** `usage`: of models that the tool called, as a search by meaning does. */
  z.object({
    kind: z.literal('result'),
    message: ToolMessage,
    startedAtMs: z.number(),
    durationMs: z.number(),
    usage: ModelUsage.optional(),
  }),
  /** A running command called a tool through the dispatcher. `parentId`: the call that the command belongs to. */
  z.object({ kind: z.literal('nested_intent'), callId: z.string(), parentId: z.string(), name: z.string() }),
  /**
   * Its outcome without its text, which went to the command and not to the model. `within`: name of the tool that ran
   * the command.
   */
  z.object({
    kind: z.literal('nested_result'),
    callId: z.string(),
    parentId: z.string(),
    name: z.string(),
    within: z.string(),
    isError: z.boolean(),
    startedAtMs: z.number(),
    durationMs: z.number(),
    usage: ModelUsage.optional(),
  }),
  z.object({
    kind: z.literal('compaction'),
    /** Null while nothing but old tool results was cut. */
    summary: SessionSummary.nullable(),
    /** The first message that stays in the session file; null when none does. */
    keepFromId: z.string().nullable(),
    /** Tool results of which the model is sent a note from now on, by message id. */
    prunedIds: z.array(z.string()),
    usage: ModelUsage.nullable(),
    /** No model could summarise: the summary is made of sentences of the conversation. */
    failed: z.literal(true).optional(),
    startedAtMs: z.number(),
    durationMs: z.number(),
  }),
]);
export type TurnStep = z.infer<typeof TurnStep>;
