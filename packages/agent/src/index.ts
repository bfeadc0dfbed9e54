export { sessionBounds, usedTokens, type ContextBudget } from './compaction/context-budget.ts';
export { makeRoom, type CompactionRun } from './compaction/make-room.ts';
export { Dispatcher, type DispatcherOptions } from './dispatcher/dispatcher.ts';
export { CommandGate } from './dispatcher/command-gate.ts';
export { DispatchRequest, exitCodes, type DispatchReply } from './dispatcher/dispatch-request.ts';
export { breakOff } from './loop/break-off.ts';
export { OUTCOME_UNKNOWN } from './loop/call-tools.ts';
export { Conversation, type ConversationStart } from './loop/conversation.ts';
export type { LoopRun, LoopTools, LoopWriter, ToolOutcome } from './loop/loop-run.ts';
export type { ShownImages } from './loop/model-messages.ts';
export { runAgentLoop } from './loop/run-agent-loop.ts';
export { dynamicContext, heartbeatNews, timestamp, type HeartbeatNews, type UserTurn } from './prompt/dynamic-context.ts';
export { fitContext, type PromptCut } from './prompt/fit-context.ts';
export type { MediaFile, SaidMessage } from './prompt/said-message.ts';
export { buildSystemPrompt, type PromptFiles } from './prompt/system-prompt.ts';
export { attachedTool, type AttachedTool } from './tools/attached-tool.ts';
export { allTools } from './tools/all-tools.ts';
export { ToolBox, ToolSet, type ToolBoxOptions } from './tools/tool-box.ts';
export type { FileView, SessionsView, ToolContext, TurnCapabilities, TurnContext, TurnStatus } from './tools/tool-context.ts';
export type {
  BackgroundCommand,
  BackgroundStart,
  BackgroundState,
  CommandCaller,
  CommandOptions,
  RuntimeView,
} from './tools/runtime/runtime-view.ts';
export type { ChildOutcome, ChildTask, SubagentsView } from './tools/sessions/subagents-view.ts';
export type { WebHit, WebPage, WebView } from './tools/web/web-view.ts';
export type { ToolAccess } from './tools/tool-access.ts';
export { contactOf, toolScope, type ToolScopeOptions } from './tools/tool-scope.ts';
export type { MemoryQuestion, MemoryView } from './tools/memory/memory-view.ts';
export { defineTool, ToolError, type Tool } from './tools/tool.ts';
