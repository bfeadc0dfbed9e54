export type { Embedder } from '@concierge/contract';
