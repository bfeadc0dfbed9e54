export {
  CompletionRequest,
  lastAsked,
  readMessageText,
  type CompletionMessage,
  CompletionStream,
  streamEnd,
  streamHeaders,
  wholeCompletion,
  type CompletionToolCall,
  type CompletionUsage,
  type WholeCompletion,
} from './completion.ts';
export { startDemoModel, type DemoModel, type DemoModelOptions } from './demo-server.ts';
