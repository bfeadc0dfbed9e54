/** Every number the interface promises. Units are in the names; a number that appears anywhere else is a defect. */
export const limits = {
  /** Unicode code points of one message (service interface, "Limits"). */
  messageMaxCharacters: 32_000,
  sessionsListDefault: 25,
  sessionsListMax: 100,
  /** Characters of a message that a list shows. */
  excerptMaxCharacters: 200,
  /** Times to come that the view of a schedule names. */
  scheduleNextRuns: 5,
  /** Words looked for in a list of sessions. */
  sessionsQueryMaxCharacters: 200,
  /** Of the name that an owner gives a conversation. */
  sessionTitleMaxCharacters: 200,
  /** Conversations whose labels a list looks at. */
  sessionLabelsMax: 2000,
  attachmentsMax: 10,
  uploadFilesMax: 10,
  uploadMaxBytes: 10 * 1024 * 1024,
  /** Name of a file that a request brings along. */
  fileNameMaxCharacters: 255,
  /** Extracted text of one attachment that reaches the model, in code points. */
  attachmentTextMaxCharacters: 60_000,
  /** Pixels of an uploaded image, checked before anything decodes it. */
  imageMaxPixels: 50_000_000,
  /** Body of any JSON request, in bytes: 32,000 code points escaped at their longest, with room for the rest. */
  jsonBodyMaxBytes: 512 * 1024,
  /** Body of a request below /v1: one file of the largest size in base64, with room for the messages. */
  openAiBodyMaxBytes: 16 * 1024 * 1024,
  /**
   * Bytes of bodies that one gateway holds at once: of those up to `jsonBodyMaxBytes`, and again so many of larger
   * ones.
   */
  bodiesMaxBytes: 256 * 1024 * 1024,
  /** Share of these bytes for one tenant; or for one address, where the request names no tenant yet. */
  bodiesOfPeerMaxBytes: 64 * 1024 * 1024,
  /** Body of a webhook; Meta sends up to 3 MB. */
  webhookBodyMaxBytes: 4 * 1024 * 1024,
  /** Body of PUT /api/files. */
  fileMaxBytes: 2 * 1024 * 1024,
  /** Size of one context file in the prompt (contract §7.13); what is beyond is read with tools. */
  contextFileMaxBytes: 64 * 1024,
  /** BOOTSTRAP* files in one prompt. */
  bootstrapFilesMax: 20,
  /** Nesting of any JSON that comes in: stringify throws long before parse does. */
  jsonMaxDepth: 64,
  /** Values in any JSON body, names of fields not counted: a schema looks at each of them. */
  jsonMaxValues: 20_000,
  /** The same of a webhook: Meta brings up to 1000 messages in one. */
  webhookMaxValues: 50_000,
  /** Entries in one list of a webhook. */
  webhookListMax: 2000,
  /** Problems with one request that its answer names. */
  invalidFieldsMax: 20,
  /** Messages of one request below /v1, and texts, images and files of one of them. */
  openAiMessagesMax: 2000,
  openAiPartsMax: 200,
  /** One text in a request below /v1: more than the largest model takes. */
  openAiTextMaxCharacters: 8 * 1024 * 1024,
  /** Tools and the like that are refused, or not looked at: enough to report it. */
  openAiOtherMax: 1000,
  modelNameMaxCharacters: 200,
  /** As ISO 8601 writes it, with room for fractions. */
  timeMaxCharacters: 40,
  /** Agents, channels and tools that the settings of a tenant name. */
  settingsEntriesMax: 1000,
  senderMaxCharacters: 256,
  idempotencyKeyMaxCharacters: 255,
  idempotencyTtlSeconds: 24 * 3600,
  /** Turns that may wait behind the running one in a session. */
  laneMaxWaiting: 50,
  /** The same for turns that collect: they are answered together. */
  collectMaxWaiting: 500,
  /**
   * Conversations of a tenant with turns that wait for their share: what waits is held in a Redis that all tenants have
   * together.
   */
  tenantMaxWaiting: 100_000,
  /** Turns that collect which are answered as one message, at most. */
  collectMaxMessages: 20,
  maxTurnsDefault: 20,
  maxTurnsMax: 100,
  /** Starts of one turn without a finished step before it ends in an error. */
  turnMaxStarts: 3,
  /** Starts of one turn, over all its steps, that may end with their process before it ends in an error. */
  turnMaxCrashes: 10,
  /** One turn, first start to end, over all its model calls and tools. */
  turnTimeoutMs: 30 * 60_000,
  toolOutputEventMaxBytes: 16 * 1024,
  /** What a provider wants back with a tool call, as JSON. A longer one is dropped: cut, a signature is none. */
  callExtraMaxCharacters: 64 * 1024,
  /** Thoughts of one reply that are kept for its provider; what is beyond is cut. */
  reasoningMaxCharacters: 128 * 1024,
  /** A tool result as the model sees it. */
  toolOutputModelMaxBytes: 64 * 1024,
  /** A call that has run for this long begins to report its output. */
  toolProgressAfterMs: 2000,
  /** Bytes of one call, in all its progress events together. */
  toolProgressMaxBytes: 16 * 1024,
  toolTimeoutMs: 60_000,
  toolTimeoutMaxMs: 600_000,
  /** Commands of one turn that run beside its other calls, at once. */
  backgroundCommandsMax: 8,
  /** Calls through the dispatcher in one turn: each is a step of its record. */
  nestedCallsMax: 500,
  /** Nested calls of one command at once; the rest wait. */
  nestedCallsAtOnce: 8,
  /** A command may call a tool that runs a command that calls a tool … so deep. */
  nestedCallsMaxDepth: 3,
  /** One request of the dispatcher: arguments and standard input together. */
  nestedCallMaxBytes: 4 * 1024 * 1024,
  streamTtlSeconds: 3600,
  /**
   * Characters that the turns of one tenant may write to streams within that time, unless its settings give another
   * number.
   */
  streamsMaxCharacters: 512 * 1024 * 1024,
  sseHeartbeatMs: 15_000,
  /**
   * Bytes a client may leave unread before it is given no more; one that takes nothing at all is dropped, and resumes.
   */
  sseMaxBufferedBytes: 1024 * 1024,
  /** A feed of changes ends after this long, so that a key that was revoked meanwhile is asked for again. */
  feedMs: 10 * 60_000,
  feedsPerKey: 20,
  /** Changes of one tenant are sent to its feeds together, and no more of them at once. */
  feedEveryMs: 200,
  feedChangesAtOnce: 200,
  /** The feed of operators has all tenants: changes are sent together, and figures by the clock. */
  operatorFeedEveryMs: 1000,
  operatorFiguresEveryMs: 5000,
  /** Sums of budgets are exact up to here: dollars are counted in billionths. */
  budgetTokensMax: 1_000_000_000_000,
  budgetUsdMax: 1_000_000,
  /** Schedules and the heartbeat stop at this share of a budget, unless the tenant's limits give another one. */
  budgetScheduleShare: 0.9,
  /** Part of a budget in per cent at which its owner is warned. */
  budgetWarningPercent: 80,
  /** The longest `Retry-After` of a spent budget: the operator may raise it meanwhile. */
  budgetRetryMaxSeconds: 24 * 3600,
  /** What a model call has reserved of a budget comes back after this long when its worker died. */
  budgetReservationMs: 10 * 60_000,
  previewRequestsPerHour: 200,
  previewMemoryBytes: 100_000_000,
  /**
   * What may lie on disk of a tenant's commands and uploads before commands are kept from writing more, unless
   * tenant.json gives another size. Uploads are only counted.
   */
  workspaceMaxBytes: 2 * 1024 ** 3,
  pathSegmentMaxBytes: 255,
  skillNameMaxCharacters: 64,
  skillDescriptionMaxCharacters: 1024,
  agentDescriptionMaxCharacters: 1024,
  /** Turns that may stand above a sub-agent: below this depth none starts further ones. */
  subagentDepthMax: 2,
  /** Sub-agents that one call may start, side by side. */
  subagentsPerCallMax: 8,
  /** Sub-agents that one turn may start in all. */
  subagentsPerTurnMax: 16,
  skillCompatibilityMaxCharacters: 500,
  /** A provider that is asked about credentials has so long to answer, for each question. */
  channelCheckTimeoutMs: 5000,
  /** A file of credentials that is put beside the bindings. */
  channelFileMaxBytes: 64 * 1024,
  modelKeysMax: 32,
  mcpServersMax: 20,
  mcpHeadersMax: 20,
  keyLabelMaxCharacters: 100,
  /** A revoked key is refused by every gateway after at most this long. */
  keyCacheMs: 500,
  /** Schedules of one tenant. */
  schedulesMax: 100,
  previewSchedulesMax: 10,
  /** Two runs of one schedule are at least this far apart. */
  scheduleMinMs: 60_000,
  previewScheduleMinMs: 15 * 60_000,
  /** `every` and `at` reach this far. */
  scheduleMaxDays: 366,
  scheduleNameMaxCharacters: 100,
  scheduleJitterMaxSeconds: 3600,
  /** Runs of one schedule that are kept on file; also the most missed ones that are reported singly, or made up for. */
  scheduleRunsKept: 200,
  scheduleMissedMax: 100,
  /** Requested runs of one schedule that have not begun yet. */
  scheduleAskedMax: 10,
  /** A run that is later than this was missed. */
  scheduleLateMs: 60_000,
  cronMaxCharacters: 100,
  handoffReasonMaxCharacters: 1000,
  handoffMaxHours: 30 * 24,
  contactNameMaxCharacters: 200,
  staffNameMaxCharacters: 80,
  staffNoteMaxCharacters: 4000,
  staffNotesPerSession: 200,
  /** Files in `answers/`; a longer one than a message is left out. */
  savedAnswersMax: 100,
  widgetTitleMaxCharacters: 60,
  widgetGreetingMaxCharacters: 500,
  widgetPlaceholderMaxCharacters: 100,
  widgetOriginsMax: 50,
  widgetOffsetMaxPixels: 400,
  /** Four times on each day of a week. */
  widgetHoursMax: 28,
  widgetAlertMaxMinutes: 7 * 24 * 60,
  /** Days of office hours that a page is sent as moments. */
  widgetOpeningsDays: 8,
  emailMaxCharacters: 254,
  /** The id in a sender token: `user:` and it make a sender. */
  widgetSubjectMaxCharacters: 200,
  /** Characters of what a visitor's browser keeps: 128 bits in hex are 32. */
  widgetVisitorMinCharacters: 32,
  widgetVisitorMaxCharacters: 128,
  /** From `iat` to `exp`. */
  widgetTokenMaxSeconds: 24 * 3600,
  /** How far the clock of the tenant's server may be off. */
  widgetClockSkewSeconds: 60,
  /** Latest time that a token may name. */
  secondsMax: 253_402_300_799,
  widgetMessagesPerVisitorMinute: 20,
  /** Messages of all visitors of a tenant together. */
  widgetMessagesPerMinute: 600,
  /** Every other request of a visitor: reloads, resumptions, looks for a staff member's answer. */
  widgetReadsPerVisitorMinute: 120,
  widgetStreamsPerVisitor: 20,
  /** Files, of 10 MiB at most each. */
  widgetFilesPerVisitorHour: 30,
  /** Files of all visitors of a tenant together: they take room that is the owner's. */
  widgetFilesPerHour: 200,
  /**
   * Of those without a sender token, where there are tokens: a browser is as many visitors as it likes, and those that
   * the tenant's server has signed have the rest for themselves.
   */
  widgetUnsignedFilesPerHour: 100,
  widgetUnsignedBytesPerDay: 512 * 1024 * 1024,
  /** Their bytes, in any 24 hours: of one visitor, and of all visitors of a tenant together. */
  widgetBytesPerVisitorDay: 100 * 1024 * 1024,
  widgetBytesPerDay: 1024 ** 3,
  /** The newest ones that a visitor is shown again. */
  widgetMessagesShown: 100,
  /** How often an open panel asks for a staff member's messages. */
  widgetAskWithPersonSeconds: 5,
  widgetAskSeconds: 60,
  /** Messages of agents that wait to be sent, of one tenant; answers to people do not count, and are always taken. */
  outboxMaxWaiting: 1000,
  /** A message that could not be sent for so long is not sent at all. */
  outboxTtlSeconds: 24 * 3600,
  /** What became of a message is known for so long. */
  outboxKeptDays: 30,
  /** Event endpoints of one tenant. */
  eventEndpointsMax: 20,
  eventEndpointDescriptionMaxCharacters: 200,
  /** One attempt at sending an event, until its answer has begun. */
  eventTimeoutMs: 15_000,
  /** Events under way to one endpoint at the same moment. */
  eventsAtOnce: 5,
  /** Tries of one event that are kept on file. */
  eventTriesKept: 20,
  eventSecretOverlapHours: 24,
  eventsSentKeptDays: 7,
  eventsDeadKeptDays: 30,
  /** An endpoint that has failed for so long is disabled. */
  eventEndpointFailingDays: 5,
  /** Dead letters that one request has sent anew. */
  eventsRedrivenMax: 1000,
  /** An archive of a tenant that is imported: its own bytes, those of the files in it, and how many there are. */
  archiveMaxBytes: 16 * 1024 ** 3,
  archiveContentMaxBytes: 64 * 1024 ** 3,
  archiveEntriesMax: 5_000_000,
  /** One file of an audit log, and how many of them are kept. */
  auditFileMaxBytes: 1024 * 1024,
  auditFilesKept: 16,
  /** A target in an audit log is cut there. */
  auditTargetMaxCharacters: 1024,
  auditReasonMaxCharacters: 200,
} as const;
