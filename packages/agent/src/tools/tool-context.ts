import type { SessionListItem, SessionView, UploadRef } from '@concierge/contract';
import type { FileBytes, FileEntry, FileText } from '@concierge/tenant';
import type { SchedulesView } from './automation/schedules-view.ts';
import type { DocumentsView, ReadUpload } from './documents/documents-view.ts';
import type { AskPerson, MessagingView } from './messaging/messaging-view.ts';
import type { MemoryView } from './memory/memory-view.ts';
import type { RuntimeView } from './runtime/runtime-view.ts';
import type { SubagentsView } from './sessions/subagents-view.ts';
import type { UsageView } from './sessions/usage-view.ts';
import type { SkillsEditing, SkillsView } from './skills/skills-view.ts';
import type { ToolAccess } from './tool-access.ts';
import type { WebView } from './web/web-view.ts';

/** The files that this agent may touch at all. A path outside is `not_found`, as if it did not exist. */
export interface FileView {
  /** @throws AppError */
  readText(path: string): Promise<FileText>;
  /** @throws AppError */
  readBytes(path: string): Promise<FileBytes>;
  list(path: string, options: { recursive: boolean; limit: number }): Promise<FileEntry[]>;
  stat(path: string): Promise<FileEntry | undefined>;
  writeText(path: string, text: string): Promise<{ created: boolean }>;
  /** Read, change and write with nobody in between. Throws what `change` throws. */
  updateText(path: string, change: (text: string) => string): Promise<unknown>;
}

export interface SessionsView {
  list(query: { limit: number; agent: string | undefined }): Promise<SessionListItem[]>;
  /** The whole conversation; undefined when there is none that this agent may see. */
  history(sessionId: string): Promise<SessionView | undefined>;
}

export interface TurnStatus {
  readonly agent: string;
  readonly channel: string;
  readonly sessionId: string;
  readonly time: string;
  readonly model: string;
  readonly contextTokens: number;
  readonly contextWindow: number;
  readonly messages: number;
  readonly compacted: boolean;
  readonly turn: { readonly modelCalls: number; readonly maxTurns: number; readonly inputTokens: number; readonly outputTokens: number };
}

/** What a tool can reach: capabilities of one turn, already narrowed to its agent and sender. There is no way round them. */
export interface ToolContext {
  readonly access: ToolAccess;
  /** Name of the agent whose turn it is. */
  readonly agent: string;
  readonly turnId: string;
  readonly sessionId: string;
  /** The call that runs; the same again when an interrupted turn goes on. */
  readonly callId: string;
  readonly files: FileView;
  /** The tenant's notes for the admin, this contact's for cs. */
  readonly memory: MemoryView;
  readonly skills: SkillsView;
  /** Undefined for cs. */
  readonly skillEditor: SkillsEditing | undefined;
  readonly sessions: SessionsView;
  readonly documents: DocumentsView;
  /** Undefined for cs. */
  readonly usage: UsageView | undefined;
  readonly runtime: RuntimeView;
  readonly web: WebView;
  readonly subagents: SubagentsView;
  readonly messaging: MessagingView;
  readonly schedules: SchedulesView;
  status(): TurnStatus;
  /** Tells whoever reads the turn what the call says while it runs. */
  progress(delta: string): void;
  /** Lets the model see an image: it is sent along with the results of this round. */
  readonly show: (image: UploadRef) => void;
  /** Ends with the turn or at the call's deadline. */
  readonly signal: AbortSignal;
}

/** What a worker lends to a turn beyond its tenant's files: everything that reaches out of the process. */
export type TurnCapabilities = Pick<ToolContext, 'runtime' | 'web' | 'subagents'> & {
  readonly askPerson: AskPerson;
  readonly readUpload: ReadUpload;
};

/** All of a turn's context; what is left comes with each call. */
export type TurnContext = Omit<ToolContext, 'signal' | 'callId' | 'progress' | 'show'>;
