export { Actor, actorName } from './actor.ts';
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
} from './agent.ts';
export { AppError, type AppErrorOptions, type InvalidField } from './app-error.ts';
export {
  ChannelBinding,
  ChannelCheck,
  ChannelError,
  SendingStop,
  ChannelTest,
  ChannelView,
  ConnectedChannel,
  parseChannelSettings,
} from './channel-binding.ts';
export {
  appChannels,
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
export { AppChannel, AppName, CanonicalChannel, Channel, channelNames, isAppChannel, type ChannelName } from './channel.ts';
export { ChatAppAddress, ChatAppMedia, ChatAppMessage, mediaKinds } from './chat-app-message.ts';
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
} from './chat.ts';
export { clip, cutText, truncate } from './clip.ts';
export { hasMoreValues } from './count-values.ts';
export { ContactAlias, ContactRecord, ContactUnreachable, ContactView } from './contact.ts';
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
} from './delivery.ts';
export { Duration, durationMs } from './duration.ts';
export { errorCodeNames, errorCodes, type ErrorCode } from './error-code.ts';
export {
  EventEndpoint,
  EventEndpointHealth,
  EventEndpointId,
  EventEndpointPatch,
  EventEndpointTest,
  EventEndpointView,
  EventEndpointWithSecret,
  NewEventEndpoint,
} from './event-endpoint.ts';
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
} from './event.ts';
export {
  Handoff,
  HandoffBody,
  HandoffCall,
  HandoffEnd,
  HandoffReason,
  HandoffState,
  HandoffView,
  PersonMessageBody,
  PersonMessageReceipt,
  WaitingHandoff,
  type HandoffWish,
} from './handoff.ts';
export { HttpUrl } from './http-url.ts';
export { invalidFields, invalidFieldsText, invalidFieldText } from './invalid-fields.ts';
export { CreateKeyBody, CreatedKey, KeyScope, KeyView, keyPrefix, keyScopes } from './key.ts';
export { codePoints, limits } from './limits.ts';
export { onOneLine, withoutEnding, withoutSpans } from './linear-text.ts';
export { MessageTemplate, OutboundId, OutboundKind, OutboundMessage } from './outbound.ts';
export { McpServerBody, McpServerName, McpServerTest, McpServerView } from './mcp.ts';
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
} from './openai.ts';
export { Problem } from './problem.ts';
export { limitTokensOf, ModelFacts, overheadShareMax, ProvidersFile, type Embedder } from './provider.ts';
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
} from './schedule.ts';
export {
  AssistantMessage,
  HistoryLine,
  Session,
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
} from './session.ts';
export { RunDelivery, RunDeliveryEnd, RunOutcome, RunTurn, ScheduleRun, ScheduleRunId, ScheduleRunView } from './schedule-run.ts';
export { ReindexReport, Skill, skillFields, SkillFrontMatter, skillNamePattern, skillNameRule } from './skill.ts';
export { viewStep, viewSteps } from './step-view.ts';
export { AgentName, TenantId, TenantPatch, TenantPlan, TenantSettings, agentNamePattern, tenantIdPattern } from './tenant.ts';
export { TimeZone } from './time-zone.ts';
export {
  csToolNames,
  isAttachedToolName,
  isListed,
  isToolName,
  mayUseTool,
  toolNames,
  toolsHandedOn,
  toolTokens,
  type CsToolName,
  type ToolName,
} from './tool-policy.ts';
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
} from './turn-event.ts';
export { readArguments, toolCallEnd, toolCallStart, type TurnOutput } from './turn-output.ts';
export {
  AcceptedTurn,
  Authority,
  ModelUsage,
  TurnGrant,
  TurnInput,
  TurnOrigin,
  TurnRecord,
  TurnStatus,
  TurnStepView,
  TurnView,
} from './turn.ts';
export { UploadId, UploadRef, UploadType, uploadTypes } from './upload.ts';
export { RemovedSession, UsageDay, UsageRow } from './usage.ts';
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
} from './widget.ts';
export { FileItem } from './routes/files.ts';
export { MemoryHit, MemoryNote, NotedContact } from './routes/memory.ts';
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
export { TenantView } from './routes/tenant.ts';
export { UsageReport } from './routes/usage.ts';
export { webhookPaths } from './routes/webhooks.ts';
export { widgetEventData, type VisitorEvent } from './routes/widget.ts';
