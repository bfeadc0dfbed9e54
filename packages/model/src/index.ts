export { estimateTokens } from './estimate-tokens.ts';
export { isContextOverflow, isFlagged, ModelError, type ModelErrorKind, type ModelErrorOptions } from './model.ts';
export type {
  AssistantModelMessage,
  ImagePart,
  Model,
  ModelEnd,
  ModelEvent,
  ModelFinishReason,
  ModelMessage,
  ModelRequest,
  ModelTool,
  TextPart,
} from './model.ts';
export {
  ProvidersFileError,
  demoProviders,
  findModel,
  hasUsableKey,
  loadProviders,
  resolveProviders,
  type EnvironmentLookup,
  type OwnKeys,
  type Provider,
  type Providers,
  type UsableModel,
} from './providers.ts';
