export { ConciergeClient, randomKey, type ClientOptions, type ClientRequest, type TurnOptions } from './concierge-client.ts';
export { ConciergeError, type ConciergeErrorFacts } from './concierge-error.ts';
export { readVisitorEvent, type FeedEvent } from './read-event.ts';
export { extendReply, ReplyText, replyText, type Reply, type ReplyPart, type ToolPart } from './reply.ts';
export { type Retry, type RetryOptions } from './retries.ts';
export { streamEvents, type Streamed, type StreamOptions, type StreamPosition, type TurnSource } from './stream-events.ts';
export type { ChatBody, ChatReply, TurnEvent, UploadRef, VisitorEvent } from '@concierge/contract';
