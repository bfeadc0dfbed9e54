export type { Agents, AgentScan, FoundAgent, InvalidAgent, OwnAgent } from './agents.ts';
export { Channels } from './channels.ts';
export type { ContactNotes, NotesAboutContact } from './contact-notes.ts';
export { Contacts, type ContactsPage } from './contacts.ts';
export { ContextFiles, type AgentContext, type ContextFile, type ContextRequest } from './context-files.ts';
export { endpointIdOfEvent } from './events/event-id.ts';
export type { EventEndpoints, OpenEndpoint } from './events/event-endpoints.ts';
export type { TenantEvents, Happening, KeptEvent } from './events/tenant-events.ts';
export { FolderSync } from './folder-sync.ts';
export { FrontMatterError, parseFrontMatter, stringifyFrontMatter, type FrontMatter } from './front-matter.ts';
export { removeFolderIn, type FileEntry } from './folder-tree.ts';
export { Handoffs, type HandoffRequest } from './handoffs.ts';
export { markIncarnation } from './incarnation.ts';
export { Inbox, type InboxItem } from './inbox.ts';
export {
  openIndex,
  type DriftReport,
  type IndexedTurn,
  type IndexSource,
  type IndexStore,
  type OpenIndexOptions,
  type Page,
  type SessionPut,
  type SessionsQuery,
  type TableDrift,
  type TenantIndex,
  type TurnsQuery,
  type UsageQuery,
} from './index-db/index.ts';
export { KeyRecord, type KeyRequest, type Keys, type NewKey } from './keys.ts';
export type { LaneOrder, OrderedTurns } from './lane-order.ts';
export { lastInboundMs } from './last-inbound.ts';
export { lastReplyOf } from './last-reply.ts';
export { isMemoryPath, type MemoryFiles, type MemoryText } from './memory-files.ts';
export { Delivery, type DeliveryPart } from './outbox/delivery.ts';
export { listDeliveries, type DeliveriesQuery } from './outbox/list-deliveries.ts';
export { isMessageId, laneOf } from './outbox/outbox-files.ts';
export { laneIdOf, Outbox, type NewOutbound, type OutboxBell, type OutboxLane, type SentPart, type Try } from './outbox/outbox.ts';
export { workspaceRules } from './path-rules.ts';
export type { Tick } from './schedules/cron-times.ts';
export { dueTicks, jitterMs, minDistanceMs, nextRunMs, nextTicks, type DueQuery, type TimedSchedule } from './schedules/schedule-times.ts';
export { Schedules, type BrokenSchedule, type ScheduleOrigin, type ScheduleRequest } from './schedules/schedules.ts';
export { runIdOf, type RunDecision, type ScheduleRuns } from './schedules/schedule-runs.ts';
export { ZoneClock } from './schedules/zone-clock.ts';
export type { Embedder } from './memory-search/embedder.ts';
export type { Searcher } from './memory-search/memory-scope.ts';
export type { MemoryAnswer, MemoryHit, MemoryQuery, MemorySearch } from './memory-search/memory-search.ts';
export { readQuestion } from './memory-search/question.ts';
export { rankTexts } from './memory-search/rank-texts.ts';
export { snippetOf } from './memory-search/snippet.ts';
export { contactFolderOf, contactOf, sessionIdOf } from './session-id.ts';
export { repairUnpaired, unknownOutcome } from './session-repair.ts';
export type { AttachedMcpServer, McpServerStore } from './mcp-servers.ts';
export { RevisionConflict } from './session-revisions.ts';
export { SessionStore } from './session-store.ts';
export type { SettingsPatch } from './settings.ts';
export type { SavedSkill, SkillEditor } from './skill-editor.ts';
export type { SkillVersion } from './skill-versions.ts';
export type { InvalidSkill, LoadedSkill, Skills, SkillScan } from './skills.ts';
export type { FileBytes, FileText, TenantFiles, WriteConditions } from './tenant-files.ts';
export { readSenderToken, signSenderToken, type ReadToken } from './sender-token.ts';
export { TenantSecrets } from './tenant-secrets.ts';
export { TenantScope, type TenantDriftReport } from './tenant-scope.ts';
export { Tenants, type Authenticated, type ForgetTenant, type TenantsOptions } from './tenants.ts';
export { readContent, walkTree, type TreeContent, type TreeEntry } from './tree-walk.ts';
export type { NewUpload, Uploads } from './uploads.ts';
export type { OpenWidget, WidgetStore } from './widget-store.ts';
export { decodeCursor, encodeCursor, type Position } from './index-db/cursor.ts';
