export { CompletionRequest, lastAsked, textOfMessage, type CompletionMessage } from './completion-request.ts';
export {
  CompletionStream,
  streamEnd,
  streamHeaders,
  wholeCompletion,
  type CompletionToolCall,
  type CompletionUsage,
  type WholeCompletion,
} from './completion-stream.ts';
export { startDemoModel, type DemoModel, type DemoModelOptions } from './demo-server.ts';
