export { Actor, actorName } from './values/actor.ts';
export {
  AgentFrontMatter,
  AgentView,
  agentRules,
  builtInAgent,
  builtInAgents,
  commonOf,
  isOwnAgentName,
  leastOf,
  toolsOfAgent,
  type AgentDefinition,
  type AgentRules,
} from './tenants/agent.ts';
export { AppError, type AppErrorOptions, type InvalidField } from './errors/app-error.ts';
export {
  ChannelBinding,
  ChannelCheck,
  ChannelError,
  SendingStop,
  ChannelTest,
  ChannelView,
  ConnectedChannel,
  parseChannelSettings,
} from './channels/channel-binding.ts';
export {
  messagingChannels,
  appNameOf,
  appNames,
  appNamesJoined,
  appNamesWithTemplates,
  channelDefinitions,
  channelSynonyms,
  recipientOf,
  type ChannelDefinition,
  type ChannelSettings,
} from './channel-definitions.ts';
export {
  MessagingChannel,
  AppName,
  CanonicalChannel,
  Channel,
  channelNames,
  isMessagingChannel,
  type ChannelName,
} from './channels/channel.ts';
export { ChannelAddress, ChannelMedia, ChannelMessage, mediaKinds } from './channels/channel-message.ts';
export {
  AdminChatBody,
  AgentChatBody,
  BusyPolicy,
  ChatQuery,
  ChatReply,
  ContactId,
  CsChatBody,
  MessageText,
  Usage,
  type ChatBody,
} from './turns/chat.ts';
export { clip, cutText, truncate } from './values/clip.ts';
export { hasMoreValues } from './values/count-values.ts';
export { ContactAlias, ContactRecord, ContactUnreachable, ContactView } from './channels/contact.ts';
export {
  DeliveryPartView,
  DeliveryProblem,
  DeliveryState,
  DeliveryStep,
  DeliveryView,
  ReceiptState,
  TryOutcome,
  deliveryStates,
  receiptStates,
} from './channels/delivery.ts';
export { DAY_MS, Duration, durationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from './values/duration.ts';
export { errorCodeNames, errorCodes, type ErrorCode } from './errors/error-code.ts';
export {
  EventEndpoint,
  EventEndpointHealth,
  EventEndpointId,
  EventEndpointPatch,
  EventEndpointTest,
  EventEndpointView,
  EventEndpointWithSecret,
  NewEventEndpoint,
} from './tenants/event-endpoint.ts';
export {
  EventId,
  EventRecord,
  EventStatus,
  EventTry,
  EventType,
  EventView,
  SubscribedType,
  TurnWarning,
  eventData,
  type EventData,
} from './tenants/event.ts';
export {
  Handoff,
  HandoffBody,
  HandoffCall,
  StoredHandoffCall,
  HandoffEnd,
  HandoffReason,
  HandoffState,
  HandoffView,
  PersonMessageBody,
  PersonMessageReceipt,
  WaitingHandoff,
  type HandoffWish,
} from './channels/handoff.ts';
export { HttpUrl } from './values/http-url.ts';
export { invalidFields, invalidFieldsText, invalidFieldText } from './errors/invalid-fields.ts';
export { CreateKeyBody, CreatedKey, KeyScope, KeyView, keyPrefix, keyScopes } from './tenants/key.ts';
export { codePoints, limits } from './limits.ts';
export { onOneLine, withoutEnding, withoutSpans } from './values/linear-text.ts';
export { MessageTemplate, OutboundId, OutboundKind, OutboundMessage } from './channels/outbound.ts';
export { McpServerBody, McpServerName, McpServerTest, McpServerView } from './tenants/mcp.ts';
export {
  ChatCompletion,
  ChatCompletionBody,
  ChatMessage,
  InputItem,
  ModelObject,
  OpenAiError,
  ResponseBody,
  ResponseObject,
  type ChatPart,
  type CompletionUsage,
  type InputMessage,
  type InputPart,
  type OutputMessage,
  type OutputText,
} from './turns/openai.ts';
export { Problem } from './errors/problem.ts';
export { limitTokensOf, ModelFacts, overheadShareMax, ProvidersFile, type Embedder } from './tenants/provider.ts';
export {
  FailureAlert,
  MissedPolicy,
  NewSchedule,
  OverlapPolicy,
  Schedule,
  ScheduleDelivery,
  ScheduleId,
  SchedulePatch,
  ScheduleTiming,
  ScheduleView,
} from './tenants/schedule.ts';
export {
  AssistantMessage,
  HistoryLine,
  Session,
  StoredSession,
  SessionListItem,
  SessionMessage,
  SessionOrigin,
  SessionSummary,
  SessionView,
  ToolCall,
  ToolMessage,
  toSessionOrigin,
  TurnStep,
  UserMessage,
} from './turns/session.ts';
export { RunDelivery, RunDeliveryEnd, RunOutcome, RunTurn, ScheduleRun, ScheduleRunId, ScheduleRunView } from './tenants/schedule-run.ts';
export { ReindexReport, Skill, skillFields, SkillFrontMatter, skillNamePattern, skillNameRule } from './tenants/skill.ts';
export { viewStep, viewSteps } from './turns/step-view.ts';
export { AgentName, TenantId, TenantPatch, TenantPlan, TenantSettings, agentNamePattern, tenantIdPattern } from './tenants/tenant.ts';
export { TimeZone } from './values/time-zone.ts';
export {
  csToolNames,
  isMcpToolName,
  isListed,
  isToolName,
  mayUseTool,
  toolNames,
  toolsHandedOn,
  toolTokens,
  type CsToolName,
  type ToolName,
} from './tenants/tool-policy.ts';
export {
  FinishReason,
  JsonObject,
  encodeServerSentEvent,
  finishReasons,
  isTerminalEvent,
  turnEventData,
  type TerminalEvent,
  type TurnEvent,
  type TurnEventType,
} from './turns/turn-event.ts';
export { readArguments, toolCallEnd, toolCallStart, type TurnOutput } from './turns/turn-output.ts';
export {
  AcceptedTurn,
  StoredTurn,
  Authority,
  ModelUsage,
  TurnGrant,
  TurnInput,
  TurnOrigin,
  TurnRecord,
  TurnStatus,
  TurnStepView,
  TurnView,
} from './turns/turn.ts';
export { UploadId, UploadRef, UploadType, uploadTypes } from './turns/upload.ts';
export { RemovedSession, UsageDay, UsageRow } from './turns/usage.ts';
export {
  SenderClaims,
  WidgetAppearance,
  WidgetBody,
  WidgetConversation,
  WidgetKey,
  WidgetMessage,
  WidgetRecord,
  WidgetReply,
  WidgetView,
  widgetKeyPrefix,
} from './channels/widget.ts';
export { FileItem } from './routes/tenant/files.ts';
export { MemoryHit, MemoryNote, NotedContact } from './routes/tenant/memory.ts';
export { Liveness, Readiness } from './routes/operations.ts';
export {
  defineRoute,
  errorShapeOf,
  errorsOf,
  type ErrorShape,
  type Route,
  type RouteAnswer,
  type RouteAuth,
  type RouteBody,
  type RouteMethod,
} from './routes/route.ts';
export { routes, type RouteId, type Routes } from './routes/routes.ts';
export { TenantView } from './routes/tenant/tenant.ts';
export { UsageReport } from './routes/tenant/usage.ts';
export { webhookPaths } from './routes/webhooks.ts';
export { widgetEventData, type VisitorEvent } from './routes/widget.ts';
