export { Actor, actorName } from './values/actor.ts';
export {
  AgentFrontMatter,
  AgentView,
  agentRules,
  builtInAgent,
  builtInAgents,
  findToolRefusal,
  intersectTools,
  isOwnAgentName,
  hasHiddenPart,
  isSharedPath,
  lowestAuthority,
  toolsOfAgent,
  type AgentDefinition,
  type AgentRules,
  type ToolRefusal,
  csToolNames,
  isMcpToolName,
  isListed,
  isToolName,
  mayUseTool,
  toolNames,
  toolsHandedOn,
  countLimitTokens,
  overheadShareMax,
  toolTokens,
  type CsToolName,
  type ToolName,
} from './tenants/agent.ts';
export {
  AppError,
  type AppErrorOptions,
  type InvalidField,
  invalidFields,
  invalidFieldsText,
  parseInput,
  invalidFieldText,
} from './errors/app-error.ts';
export {
  ChannelBinding,
  ChannelCheck,
  channelCheckCodes,
  type ChannelCheckCode,
  ChannelError,
  ChannelSetup,
  SendingStop,
  ChannelTest,
  ChannelView,
  ConnectedChannel,
  ReplyWindowView,
  parseChannelSettings,
} from './channels/channel-binding.ts';
export { Assignee, SavedAnswer, SessionStaff, StaffNote, StoredAssignee, StoredStaffNote } from './channels/staff-note.ts';
export {
  messagingChannels,
  toAppName,
  appNames,
  appNamesJoined,
  appNamesWithTemplates,
  channelDefinitions,
  channelSynonyms,
  readRecipient,
  type ChannelDefinition,
  type ChannelSettings,
  type WhatsAppSettings,
  type MessengerSettings,
  type TelegramSettings,
  type SlackSettings,
  type TwilioSettings,
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
  UploadId,
  UploadRef,
  UploadType,
  uploadTypes,
} from './turns/chat.ts';
export { isOfLaterVersion, openList, toStoredSchema } from './values/stored.ts';
export { PolicyCheckBody, PolicyRule, PolicyVerdict, WhoAmI } from './tenants/owner.ts';
export { FileProblem, fileProblemCodes, toFieldProblems, type FileProblemCode } from './tenants/file-problem.ts';
export type { Said } from './values/said.ts';
export {
  FILE_VERSIONS_MAX,
  FileHistoryView,
  FileRestoreBody,
  FileVersion,
  FileVersionId,
  type FileVersionView,
} from './tenants/file-version.ts';
export { AuditActor, AuditEntry, auditActs, type AuditAct } from './values/audit.ts';
export {
  CreatedTenant,
  ImportedTenant,
  NewTenantBody,
  OperatedTenant,
  OperatedTenantDetails,
  OperatedTenantPatch,
  RemovedTenant,
} from './tenants/operated-tenant.ts';
export { countDrift, ReindexBody, type Reindexed, type TenantDrift } from './tenants/reindex.ts';
export { AuditReason, CancelTurnsBody, type CancelledTurns } from './turns/cancelled-turns.ts';
export { RedriveBody, type Redriven, type RedriveSkip, type StuckDeliveries } from './channels/stuck-delivery.ts';
export {
  FAILURE_MESSAGE_MAX,
  sumFailures,
  sumTenantTurns,
  type TenantTurns,
  type FailureGroup,
  type RetrySkip,
  type TurnRetryBody,
  type TurnsRetried,
} from './turns/failure.ts';
export { findingCodes, type Finding, type FindingCode } from './turns/finding.ts';
export {
  TENANT_TREND,
  waitReasons,
  ProviderHealth,
  WaitReason,
  type Health,
  type Overview,
  type WaitingEntry,
  type WaitingPage,
  type WaitingTenant,
  type WaitsFor,
  type WorkerView,
} from './turns/waiting.ts';
export { backoffMs, type BackoffPlan } from './values/backoff.ts';
export { clip, codePoints, cutText, fitsMessage, truncate, onOneLine, withoutEnding, withoutSpans } from './values/text.ts';
export { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, hasMoreValues, Duration, durationMs, TimeZone, HttpUrl } from './values/values.ts';
export {
  ContactAlias,
  ContactDetails,
  ContactListItem,
  ContactRecord,
  ContactUnindexed,
  ContactUnreachable,
  ContactView,
} from './channels/contact.ts';
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
export {
  ErasedCounts,
  Erasure,
  ErasureBody,
  ErasureId,
  ErasurePlace,
  ErasureReport,
  ErasureTraces,
  StoredErasureReport,
} from './channels/erasure.ts';
export { LogLine, logLevels, Series, SeriesPoint, SeriesRange, seriesRanges } from './turns/series.ts';
export { RetentionReport, RetentionRule } from './tenants/retention.ts';
export { errorCodeNames, errorCodes, findErrorFacts, type ErrorCode, Problem } from './errors/error-code.ts';
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
  HandoffAlert,
  HandoffEnd,
  HandoffReason,
  HandoffState,
  HandoffView,
  PersonMessageBody,
  PersonMessageReceipt,
  WaitingHandoff,
  type HandoffWish,
} from './channels/handoff.ts';
export { CreateKeyBody, CreatedKey, KeyScope, KeyView, keyPrefix, keyScopes } from './tenants/key.ts';
export { limits } from './limits.ts';
export { MessageTemplate, OutboundId, OutboundKind, OutboundMessage } from './channels/outbound.ts';
export { ModelKeyBody, ModelKeyView, ModelProviderName } from './tenants/model-key.ts';
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
export { ModelFacts, ProvidersFile, type CallMeter, type Embedder, type ExpectedCall, type HowToEmbed } from './tenants/provider.ts';
export {
  FailureAlert,
  MissedPolicy,
  NewSchedule,
  OverlapPolicy,
  Schedule,
  ScheduleDelivery,
  ScheduleId,
  SchedulePatch,
  ScheduleTimes,
  ScheduleTimesQuery,
  ScheduleTiming,
  ScheduleView,
  RunDelivery,
  RunDeliveryEnd,
  RunOutcome,
  RunTurn,
  ScheduleRun,
  ScheduleRunId,
  ScheduleRunView,
} from './tenants/schedule.ts';
export {
  AssistantMessage,
  CallExtra,
  findLastMessage,
  HistoryLine,
  Session,
  StoredSession,
  LastMessage,
  SessionFork,
  SessionForkBody,
  SessionLabel,
  SessionLabelBody,
  SessionLabelView,
  SessionListItem,
  SessionPage,
  SessionState,
  SessionTurn,
  SessionMessage,
  SessionOrigin,
  SessionSummary,
  SessionView,
  ToolCall,
  ToolMessage,
  sessionOrigins,
  TurnStep,
  UserMessage,
} from './turns/session.ts';
export { ReindexReport, Skill, skillFields, SkillFrontMatter, skillNamePattern, skillNameRule } from './tenants/skill.ts';
export {
  encodeServerSentEvent,
  viewStep,
  viewSteps,
  readArguments,
  toolCallEnd,
  toolCallStart,
  type TurnOutput,
  countPromptCharacters,
  toPromptParts,
  type MeasuredPart,
} from './turns/turn-output.ts';
export { BudgetReached, BudgetsView, BudgetView } from './tenants/budget.ts';
export { AgentName, TenantId, TenantPatch, TenantPlan, TenantSettings, agentNamePattern, tenantIdPattern } from './tenants/tenant.ts';
export {
  FinishReason,
  JsonObject,
  finishReasons,
  isTerminalEvent,
  turnEventData,
  type TerminalEvent,
  type TurnEvent,
  type TurnEventType,
} from './turns/turn-event.ts';
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
  FeedChange,
  OperatedTurn,
  PromptPart,
  TraceFacts,
  TurnView,
} from './turns/turn.ts';
export { isSimulated, SimulationBody, SimulationReceipt, toSimulatedAddress } from './channels/simulation.ts';
export { PromptPreview, type PartChange } from './turns/prompt.ts';
export { measureTrace, writeTrace } from './turns/trace-text.ts';
export { spanKinds, TRACE_SPANS_MAX, TraceSpan, TurnTrace, type SpanKind } from './turns/trace.ts';
export { RemovedSession, totalUsage, UsageDay, usageDays, UsageOfTenant, UsageRow, type UsageTotal } from './turns/usage.ts';
export {
  SenderClaims,
  WidgetAppearance,
  WidgetBody,
  WidgetConversation,
  WidgetDisplay,
  WidgetKey,
  WidgetMessage,
  type WidgetMessageBody,
  WidgetRecord,
  WidgetReply,
  WidgetView,
  widgetKeyPrefix,
  widgetLanguages,
  type WidgetLanguage,
} from './channels/widget.ts';
export { weekdays, WidgetOpening, WidgetTeam, type TeamHours } from './channels/widget-team.ts';
export { FileItem } from './routes/tenant/files.ts';
export { MemoryHit, MemoryNote, NotedContact } from './routes/tenant/memory.ts';
export { Liveness, Readiness } from './routes/operations.ts';
export { OperatorSignIn } from './routes/ops/waiting.ts';
export {
  defineRoute,
  chooseErrorShape,
  listErrors,
  type ErrorShape,
  type Route,
  type RouteAnswer,
  type RouteAuth,
  type RouteBody,
  type RouteMethod,
} from './routes/route.ts';
export { routes, type RouteId, type Routes } from './routes/routes.ts';
export { TenantView, UsageReport } from './routes/tenant/tenant.ts';
export { webhookPaths } from './routes/channels.ts';
export { widgetEventData, type VisitorEvent } from './routes/widget.ts';
