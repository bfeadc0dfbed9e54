export {
  ignoredReasons,
  type ChannelAdapter,
  type Delivery,
  type IgnoredReason,
  type InboundAlias,
  type InboundCallback,
  type InboundChoice,
  type InboundConversation,
  type InboundIgnored,
  type InboundItem,
  type InboundLocation,
  type InboundMessage,
  type InboundOrder,
  type InboundReachable,
  type InboundReceipt,
  type InboundRetraction,
  type InboundRevocation,
  type InboundSender,
  type InboundUnreachable,
  type MediaKind,
  type MediaReference,
  type WebhookQuery,
  type WebhookRequest,
} from './channel-adapter.ts';
export { channelAdapters, openSender, readBinding, type OpenBinding } from './channel-adapters.ts';
export {
  ChannelConnections,
  viewReplyWindow,
  type BindingStore,
  type ConnectionsOptions,
  type ConnectableTenant,
} from './channel-connections.ts';
export { mediaAccess, FileUnavailableError, type FetchedFile, type FileFailure, type FileRequest } from './outbound/fetch-file.ts';
export type {
  ChannelSender,
  CredentialCheck,
  Destination,
  OutgoingMessage,
  OutgoingTemplate,
  TypingRequest,
  SenderOptions,
} from './outbound/channel-sender.ts';
export { simulatedRequests, type SimulatedMessage } from './inbound/simulate.ts';
export { keepTyping } from './outbound/channel-sender.ts';
export {
  providerEnvironment,
  toProviderSettings,
  type ProviderSettings,
  providerUrls,
  type ProviderUrls,
} from './outbound/provider-environment.ts';
export { renderParts } from './outbound/render-parts.ts';
export { replyWindow, type ReplyWindow } from './outbound/sending-rules.ts';
export { retryDelayMs, type RetryPosition } from './outbound/send-outcome.ts';
export type { SendOutcome, SendProblem } from './outbound/send-outcome.ts';
export type { Part } from './outbound/render-parts.ts';
export type { Pace, SendingRules } from './outbound/sending-rules.ts';
