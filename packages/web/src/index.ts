export { OutboundError, type OutboundFailure } from './outbound/outbound-error.ts';
export {
  Outbound,
  type OutboundDocument,
  type OutboundFetch,
  type OutboundGet,
  type OutboundOptions,
  type OutboundPolicy,
} from './outbound/outbound.ts';
export { outboundAllow } from './outbound/outbound-allow.ts';
export { DocumentReader, type ReadDocument, type ReadTerms } from './reader/document-reader.ts';
export { splitPages } from './reader/split-pages.ts';
export { UnreadableError } from './reader/unreadable-error.ts';
export { WebPages, type OpenPage, type WebDocument } from './reader/web-pages.ts';
export type { SearchHit } from './search/search-engine.ts';
export { SearchError, WebSearch, type WebSearchSettings } from './search/web-search.ts';
