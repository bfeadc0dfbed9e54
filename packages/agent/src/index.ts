export { usedTokens } from './compaction/plan-compaction.ts';
export { compact, type CompactionRun } from './compaction/compact.ts';
export {
  Dispatcher,
  DispatchRequest,
  exitCodes,
  type DispatcherOptions,
  type DispatchReply,
  CommandGate,
} from './dispatcher/dispatcher.ts';
export { OUTCOME_UNKNOWN, closeOpenCalls, runAgentLoop } from './loop/run-agent-loop.ts';
export { Conversation, type ConversationStart } from './loop/conversation.ts';
export type { LoopRun, LoopTools, ToolOutcome } from './loop/loop-run.ts';
export { mayNeedRoom, sessionBounds, type ContextBudget, type ShownImages } from './loop/model-messages.ts';
export { buildUserMessage, dynamicContext, timestamp } from './prompt/user-message.ts';
export { fitContext, type PromptCut, buildSystemPrompt, type PromptFiles } from './prompt/system-prompt.ts';
export type { MediaFile, PromptFacts, PromptTurn, PromptTurns, ReadText } from './prompt/user-message.ts';
export { allTools } from './tools/all-tools.ts';
export type {
  CallContext,
  ChildOutcome,
  ChildTask,
  ToolContext,
  TurnCapabilities,
  TurnStatus,
  WebHit,
  WebPage,
} from './tools/tool-context.ts';
export type {
  BackgroundCommand,
  BackgroundStart,
  BackgroundState,
  CommandCaller,
  CommandOptions,
  RuntimeAccess,
} from './tools/runtime/runtime-access.ts';
export type { ToolAccess } from './tools/tool-access.ts';
export { toNotesOwner, toolScope, type ToolScopeOptions } from './tools/tool-scope.ts';
export { ToolError, ToolRegistry, TurnTools, defineTool, mcpTool, type McpTool, type Tool, type TurnToolsOptions } from './tools/tool.ts';
