import type { CallMeter, SessionListItem, SessionView, UploadRef, UsageRow } from '@concierge/contract';
import type { FileBytes, FileEntry, FileText, MemoryAnswer, MemoryFiles, MemoryQuery, SkillEditor, Skills } from '@concierge/tenant';
import type { TurnSchedules } from './automation/turn-schedules.ts';
import type { RequestStaff, FindReplyWindow, TurnMessaging } from './messaging/turn-messaging.ts';
import type { RuntimeAccess } from './runtime/runtime-access.ts';
import type { ToolAccess } from './tool-access.ts';

type MemoryQuestion = Pick<MemoryQuery, 'text' | 'limit' | 'offset' | 'kinds' | 'signal' | 'meter'>;

export type TurnMemory = Pick<MemoryFiles, 'write' | 'get' | 'list' | 'forget'> & {
  readonly search: (question: MemoryQuestion) => Promise<MemoryAnswer>;
};

export interface TurnSessions {
  readonly list: (query: {
    limit: number;
    agent: string | undefined;
  }) => Promise<readonly Omit<SessionListItem, 'contactName' | 'state' | 'pinned' | 'assignee'>[]>;
  /** The whole conversation; undefined when there is none that this agent may see. */
  readonly history: (sessionId: string) => Promise<SessionView | undefined>;
}

export interface TurnDocuments {
  /** Attached in this conversation, in order. */
  readonly list: () => Promise<readonly UploadRef[]>;
  /** undefined for what there is not, and for what this agent may not see. */
  readonly find: (id: string) => Promise<UploadRef | undefined>;
  readonly text: ReadUpload;
  /** The turn's model is sent images; otherwise it gets a note in their place. */
  readonly showsImages: boolean;
}

/** Text that is read out of an upload, now or before; undefined when there is none, as of an image. */
export type ReadUpload = (upload: UploadRef, signal: AbortSignal) => Promise<string | undefined>;

/** The files that this agent may touch at all. A path outside is `not_found`, as if it did not exist. */
export interface FileAccess {
  /** @throws AppError */
  readText(path: string): Promise<FileText>;
  /** @throws AppError */
  readBytes(path: string): Promise<FileBytes>;
  /** What is hidden is left out with everything in it, and takes no room of the limit. */
  list(path: string, options: { recursive: boolean; limit: number; isHidden?: (path: string) => boolean }): Promise<FileEntry[]>;
  stat(path: string): Promise<FileEntry | undefined>;
  writeText(path: string, text: string): Promise<{ created: boolean }>;
  /** Read, change and write without interruption. Throws what `change` throws. */
  updateText(path: string, change: (text: string) => string): Promise<unknown>;
}

/** One page of a document of the web; long documents have several. */
export interface WebPage {
  /** After redirects. */
  readonly url: string;
  /** Empty where the document has none. */
  readonly title: string;
  /** Readable Markdown; plain text and data as they are. */
  readonly text: string;
  readonly page: number;
  readonly pages: number;
  /** Bare words in place of Markdown: the document was too large or too deep for more. */
  readonly isPlain: boolean;
  /** The document is longer than its last page. */
  readonly isCut: boolean;
}

export interface WebHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

export interface ChildTask {
  readonly task: string;
  /** Name of the agent that does it; undefined: one like the asking agent, with fewer tools. */
  readonly agent: string | undefined;
}

/** What became of a task. A failed task is a result to read too, not an exception. */
export type ChildOutcome =
  | {
      readonly status: 'done';
      readonly turnId: string;
      readonly sessionId: string;
      /** Its last reply. */
      readonly reply: string;
    }
  | {
      readonly status: 'failed' | 'cancelled';
      /** Null when it could not even be started. */
      readonly turnId: string | null;
      readonly sessionId: string | null;
      readonly reason: string;
    };

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

/** What a worker binds for a turn beyond its tenant's files: everything that reaches out of the process. */
export interface TurnCapabilities {
  readonly runtime: RuntimeAccess;
  /**
   * One page of the open web, guarded: public addresses only, and for cs no more than what its conversation is about.
   * `page` counts from 1.
   * @throws ToolError for what must not or cannot be fetched
   */
  readonly fetchPage: (url: string, options: { readonly page: number; readonly signal: AbortSignal }) => Promise<WebPage>;
  /**
   * Best first; `count` at most, and for cs at most a few.
   * @throws ToolError when no search is configured, or it fails
   */
  readonly searchWeb: (query: string, options: { readonly count: number; readonly signal: AbortSignal }) => Promise<readonly WebHit[]>;
  /** Agents that may be given work. */
  readonly listAgents: () => Promise<readonly { readonly name: string; readonly description: string }[]>;
  /**
   * Runs all tasks side by side, as turns that end with this one; outcomes in their order. The same call of the same
   * turn, made again after a crash, attaches to the same children. @throws ToolError for an agent there is not, and for
   * more tasks than may be
   */
  readonly runSubagents: (
    tasks: readonly ChildTask[],
    call: { readonly callId: string; readonly signal: AbortSignal },
  ) => Promise<readonly ChildOutcome[]>;
  readonly requestStaff: RequestStaff;
  readonly findReplyWindow: FindReplyWindow;
  readonly readUpload: ReadUpload;
}

/** The methods of a class: a stand-in in a unit test has none of its private fields. */
type MethodsOf<Class> = Pick<Class, keyof Class>;

/**
 * What a tool can reach: capabilities of one turn, already narrowed to its agent and sender. There is no way round
 * them.
 */
export interface ToolContext extends Pick<TurnCapabilities, 'runtime' | 'fetchPage' | 'searchWeb' | 'listAgents' | 'runSubagents'> {
  readonly access: ToolAccess;
  /** Name of the agent whose turn it is. */
  readonly agent: string;
  readonly turnId: string;
  readonly sessionId: string;
  /** The call that runs; the same again when an interrupted turn goes on. */
  readonly callId: string;
  readonly files: FileAccess;
  /** The tenant's notes for the admin, this contact's for cs. */
  readonly memory: TurnMemory;
  readonly skills: Pick<Skills, 'load' | 'readFile' | 'list' | 'scan'>;
  /** Undefined for cs. */
  readonly skillEditor:
    | Pick<SkillEditor, 'text' | 'create' | 'update' | 'remove' | 'writeFile' | 'removeFile' | 'versions' | 'restore'>
    | undefined;
  readonly sessions: TurnSessions;
  readonly documents: TurnDocuments;
  /** What the tenant has used today, by UTC, in turns that have ended; undefined for cs. */
  readonly usageToday: (() => Promise<readonly UsageRow[]>) | undefined;
  readonly messaging: MethodsOf<TurnMessaging>;
  readonly schedules: MethodsOf<TurnSchedules>;
  readonly status: () => TurnStatus;
  /** Shows readers of the turn what the call reports while it runs. */
  readonly progress: (delta: string) => void;
  /** Lets the model see an image: it is sent along with the results of this round. */
  readonly show: (image: UploadRef) => void;
  /** Of models that the tool calls. */
  readonly meter: CallMeter;
  /** Ends with the turn or at the call's deadline. */
  readonly signal: AbortSignal;
}

/** What comes with each call; the rest of its context is the turn's. */
export type CallContext = Pick<ToolContext, 'signal' | 'callId' | 'progress' | 'show' | 'meter'>;
