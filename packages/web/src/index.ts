export { OutboundError, type OutboundFailure } from './outbound/outbound-error.ts';
export {
  Outbound,
  type OutboundDocument,
  type OutboundFetch,
  type OutboundGet,
  type OutboundOptions,
  type OutboundPolicy,
} from './outbound/outbound.ts';
export { outboundAllow } from './outbound/outbound-url.ts';
export { DocumentReader, type ReadDocument, type ReadTerms, UnreadableError } from './reader/document-reader.ts';
export { splitPages, WebPages, type OpenPage, type WebDocument } from './reader/web-pages.ts';
export type { SearchHit } from './search/engines.ts';
export { SearchError, WebSearch, type WebSearchSettings } from './search/web-search.ts';
