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
export { channelAdapters } from './channel-adapters.ts';
export { ChannelConnections, type BindingStore, type ConnectionsOptions, type ConnectableTenant } from './channel-connections.ts';
export { mediaAccess } from './media-sources.ts';
export { openSender, readBinding, type OpenBinding } from './open-binding.ts';
export type {
  ChannelSender,
  CredentialCheck,
  Destination,
  OutgoingMessage,
  OutgoingTemplate,
  TypingRequest,
} from './outbound/channel-sender.ts';
export { FileUnavailableError, type FetchedFile, type FileFailure, type FileRequest } from './outbound/fetch-file.ts';
export { keepTyping } from './outbound/keep-typing.ts';
export { providerEnvironment, toProviderSettings, type ProviderSettings } from './outbound/provider-environment.ts';
export { providerUrls, type ProviderUrls } from './outbound/provider-urls.ts';
export { renderParts } from './outbound/render-parts.ts';
export { replyWindow, type ReplyWindow } from './outbound/reply-window.ts';
export { retryDelayMs, type RetryPosition } from './outbound/retry-delay.ts';
export type { SendOutcome, SendProblem } from './outbound/send-outcome.ts';
export type { SenderOptions } from './outbound/sender-options.ts';
export type { Part } from './outbound/split.ts';
export type { Pace, Surface } from './outbound/surface.ts';
