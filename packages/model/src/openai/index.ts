export { Embeddings, type EmbeddingsOptions } from './embeddings.ts';
export type { FailedAttempt } from './models.ts';
export { defaultModelLimits, type ModelLimits } from './attempts.ts';
export { Models, type ModelHealth, type ModelsOptions, type ProviderModel } from './models.ts';
