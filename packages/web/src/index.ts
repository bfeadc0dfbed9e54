export { OutboundError, type OutboundFailure } from './outbound/outbound-error.ts';
export {
  Outbound,
  type OutboundDocument,
  type OutboundFetch,
  type OutboundGet,
  type OutboundOptions,
  type OutboundPolicy,
} from './outbound/outbound.ts';
