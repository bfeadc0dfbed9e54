export { Embeddings, type EmbeddingsOptions, type EmbeddingsUsage } from './embeddings.ts';
export type { FailedAttempt } from './fallback-model.ts';
export { defaultModelLimits, type ModelLimits } from './limits.ts';
export { Models, type ModelsOptions, type ProviderModel } from './models.ts';
