export { readAgentText } from './agents/agents.ts';
export type { Agents, AgentScan, FoundAgent, InvalidAgent, OwnAgent, BrokenFile } from './agents/agents.ts';
export { AuditLog, type AuditPage, type AuditRecord } from './audit/audit-log.ts';
export { Channels } from './channels/channels.ts';
export type { ContactNotes, NotesAboutContact } from './contacts/contact-notes.ts';
export { Contacts, type ContactsPage } from './contacts/contacts.ts';
export { ContextFiles, type AgentContext, type ContextFile, type ContextRequest } from './agents/context-files.ts';
export { endpointIdOfEvent } from './events/event-files.ts';
export type { EventEndpoints, OpenEndpoint } from './events/event-endpoints.ts';
export type { TenantEvents, WebhookEventInput, KeptEvent } from './events/tenant-events.ts';
export { FrontMatterError, parseFrontMatter, stringifyFrontMatter, type FrontMatter } from './agents/front-matter.ts';
export { removeExpired, reportExpired, toRetentionReport } from './retention/retention.ts';
export { eraseTraces } from './erasure/erase-traces.ts';
export { findTraces, identifyContact } from './erasure/find-traces.ts';
export { findPlaces } from './erasure/find-places.ts';
export { Handoffs, type HandoffRequest } from './contacts/handoffs.ts';
export { markIncarnation } from './starter.ts';
export { Inbox, parseTurn, readTurn, renderTurn, type InboxItem, type HasEnded, type LoggedTurns } from './inbox/inbox.ts';
export { KeyRecord, type KeyRequest, type Keys, type NewKey } from './keys/keys.ts';
export type { LaneOrder, OrderedTurns } from './inbox/lane-order.ts';
export { findAnswer, findLastReply, hasReachedContact, lastInboundMs } from './sessions/last-messages.ts';
export { isMemoryPath, type MemoryFiles, type MemoryText } from './memory-search/memory-files.ts';
export { Delivery, type DeliveryPart } from './outbox/delivery.ts';
export { listDeliveries, type DeliveriesQuery } from './outbox/list-deliveries.ts';
export { readLaneId } from './outbox/outbox-files.ts';
export { isMessageId } from './outbox/outbox-folder.ts';
export { deriveLaneId, Outbox, type NewOutbound, type WakeOutbox, type OutboxLane, type SentPart, type Try } from './outbox/outbox.ts';
export type { Tick } from './schedules/cron-times.ts';
export { dueTicks, jitterMs, minDistanceMs, nextRunMs, nextTicks, type DueQuery, type TimedSchedule } from './schedules/schedule-times.ts';
export { Schedules, type BrokenSchedule, type ScheduleOrigin, type ScheduleRequest } from './schedules/schedules.ts';
export { toRunId, type RunDecision, type ScheduleRuns } from './schedules/schedule-runs.ts';
export { ZoneClock } from './schedules/zone-clock.ts';
export type { Searcher, MemoryAnswer, MemoryHit, MemoryQuery, MemorySearch } from './memory-search/memory-search.ts';
export { rankTexts, cutSnippet } from './memory-search/rank-texts.ts';
/** What the agent's tools use of it: the floor below is not theirs. */
export { readQuestion, type TenantIndex } from '@concierge/index';
export { toContactFolder, toNotesOwner, deriveSessionId } from './sessions/session-ids.ts';
export { repairUnpaired, unknownOutcome } from './sessions/session-repair.ts';
export type { McpServerTools, McpServerStore } from './agents/mcp-servers.ts';
export { forkSession } from './sessions/fork-session.ts';
export { SessionStore } from './sessions/session-store.ts';
export type { SettingsPatch } from './settings/settings.ts';
export type { SavedSkill, SkillEditor } from './skills/skill-editor.ts';
export type { SkillVersion } from './skills/skill-versions.ts';
export { readSkillText } from './skills/skills.ts';
export type { InvalidSkill, LoadedSkill, Skills, SkillScan } from './skills/skills.ts';
export { digestPart, measurePart, type FileHistory } from './files/file-history.ts';
export type { FileEntry } from './files/list-folder.ts';
export {
  findPathProblem,
  isPrivateName,
  workspaceRules,
  type FileBytes,
  type FileText,
  type TenantFiles,
  type WriteConditions,
} from './files/tenant-files.ts';
export { readSenderToken, signSenderToken, type ReadToken } from './widget/sender-token.ts';
export { TenantSecrets } from './tenant-secrets.ts';
export { TenantScope, type TellChange, type TenantDriftReport } from './tenant-scope.ts';
export { RevisionConflict, type Publications } from './sessions/publications.ts';
export { Tenants, toLogsFolder, type Authenticated, type ForgetTenant, type TenantsOptions } from './tenants.ts';
export type { NewUpload, Uploads } from './uploads/uploads.ts';
export { countOpenMs, listOpenings } from './widget/opening-times.ts';
export { toWidgetBody, type OpenWidget, type WidgetStore } from './widget/widget-store.ts';
