import { randomUUID } from 'node:crypto';
import { channelAdapters, simulatedRequests, type WebhookQuery, type WebhookRequest } from '@concierge/channel';
import {
  AppError,
  Channel,
  isMessagingChannel,
  toSimulatedAddress,
  type ChannelSettings,
  type MessagingChannel,
  type SimulationBody,
  type SimulationReceipt,
} from '@concierge/contract';
import type { Tenants, TenantScope } from '@concierge/tenant';
import type { Turns } from '@concierge/turn';
import type { z } from 'zod';
import type { Handlers } from '../http/call.ts';
import { readRequestContext, readTraceparent } from '../http/request-context.ts';
import { buildDedupeId, type BoundChannel } from '../inbound/inbound-turns.ts';
import type { Inbound } from '../inbound/inbound.ts';
import type { GatewayMetrics } from '../metrics.ts';

export interface WebhookOptions {
  readonly tenants: Pick<Tenants, 'find'>;
  readonly inbound: Pick<Inbound, 'take'>;
  readonly turns: Pick<Turns, 'findAccepted'>;
  readonly metrics: Pick<GatewayMetrics, 'acknowledgements' | 'webhookEnded'>;
  /** Where providers reach this gateway; undefined: it is not configured. */
  readonly publicUrl: string | undefined;
  readonly now: () => number;
}

/**
 * Channels deliver messages here. Unknown tenant, unbound, disabled or broken channel, bad signature: the same work,
 * and one and the same answer. A suspended tenant's messages are accepted; their turns wait.
 */
export function webhookHandlers(options: WebhookOptions): Pick<Handlers, 'verifyWebhook' | 'receiveWebhook' | 'simulateChannel'> {
  return {
    verifyWebhook: async ({ request, params }) => {
      const endpoint = { channel: channelOrRefuse(params.channel), tenantId: params.tenantId };
      return { kind: 'answer', status: 200, text: await greet(options, endpoint, request.query) };
    },
    receiveWebhook: async ({ request, response, params, body }) => {
      const channel = channelOrRefuse(params.channel);
      const stop = options.metrics.acknowledgements.startTimer({ channel });
      const { from, text } = await receive(
        options,
        { channel, tenantId: params.tenantId },
        { headers: request.headers, body, url: calledUrl(options, request.originalUrl), nowMs: options.now() },
      ).catch((error: unknown) => {
        options.metrics.webhookEnded(channel, error instanceof AppError && error.status < 500 ? 'rejected' : 'failed');
        throw error;
      });
      readRequestContext(response).tenantId = from.scope.tenantId;
      stop();
      options.metrics.webhookEnded(channel, 'acknowledged');
      return { kind: 'answer', status: 200, text };
    },
    simulateChannel: async ({ caller: { scope }, params, body, request }) => ({
      kind: 'answer',
      status: 202,
      json: await simulate(options, { channel: params.channel, scope, url: request.originalUrl }, body),
    }),
  };
}

interface Endpoint<Of extends MessagingChannel> {
  readonly channel: Of;
  readonly tenantId: string;
}

interface Simulated<Of extends MessagingChannel> {
  readonly channel: Of;
  readonly scope: TenantScope;
  readonly url: string;
}

/** Brings a message as the provider would, signature and all, and answers with the turn that it has become. */
async function simulate<Of extends MessagingChannel>(
  options: WebhookOptions,
  { channel, scope, url: called }: Simulated<Of>,
  { message: text, sender, name }: z.output<typeof SimulationBody>,
): Promise<z.output<typeof SimulationReceipt>> {
  const settings = await scope.channels.open(channel);
  if (settings === undefined) throw new AppError('not_found', 'The channel is not connected, or is disabled.');
  const nowMs = options.now();
  // Without PUBLIC_URL no provider could call; the signature is over the same words on both sides.
  const url = calledUrl(options, called) ?? `https://localhost${called}`;
  const id = `simulated.${randomUUID()}`;
  const written = { id, from: toSimulatedAddress(sender), name: name ?? null, text, nowMs, url };
  const request = { ...simulatedRequests[channel](written, settings), url, nowMs };
  const { from, refusals } = await receive(options, { channel, tenantId: scope.tenantId }, request);
  const delivery = channelAdapters[channel].parse(request.body, settings, url);
  const items = delivery.kind === 'items' ? delivery.items : [];
  const message = items.find((item) => item.kind === 'message');
  if (message === undefined) throw new AppError('invalid_request', 'There is nothing to answer in this message.');
  const turn = await options.turns.findAccepted(scope, buildDedupeId(from, message.providerMessageId));
  if (turn === undefined) throw refusals[0] ?? new AppError('too_many_waiting');
  return { turnId: turn.id, contact_id: turn.contact_id, simulated: true };
}

async function greet<Of extends MessagingChannel>(
  { tenants }: WebhookOptions,
  { channel, tenantId }: Endpoint<Of>,
  query: WebhookQuery,
): Promise<string> {
  const settings = await openSettings(await tenants.find(tenantId), channel);
  return channelAdapters[channel].handshake?.(query, settings) ?? refuse();
}

interface Received {
  readonly from: BoundChannel;
  /** The answer: nothing, or the challenge of a provider that makes its handshake by POST. */
  readonly text: string;
  /** A provider is not told why a message is not wanted: it would deliver it again. */
  readonly refusals: readonly AppError[];
}

async function receive<Of extends MessagingChannel>(
  { tenants, inbound }: WebhookOptions,
  { channel, tenantId }: Endpoint<Of>,
  request: WebhookRequest,
): Promise<Received> {
  const adapter = channelAdapters[channel];
  const scope = await tenants.find(tenantId);
  const settings = await openSettings(scope, channel);
  const isSigned = adapter.verify(request, settings);
  if (!isSigned || settings === undefined || scope === undefined) return refuse();
  const from = { scope, channel, account: adapter.selfId(settings), traceparent: readTraceparent(request.headers) };
  const delivery = adapter.parse(request.body, settings, request.url);
  switch (delivery.kind) {
    case 'malformed': {
      throw new AppError('invalid_json');
    }
    case 'challenge': {
      return { from, text: delivery.challenge, refusals: [] };
    }
    case 'items': {
      return { from, text: '', refusals: await inbound.take(from, delivery.items) };
    }
  }
}

/**
 * undefined when the channel is not connected, is disabled, or cannot be read: all of them are the same from outside.
 */
async function openSettings<Of extends MessagingChannel>(
  scope: TenantScope | undefined,
  channel: Of,
): Promise<ChannelSettings[Of] | undefined> {
  try {
    return await scope?.channels.open(channel);
  } catch (error) {
    // Its owner sees that it is broken; the file's damage has been logged when it was read.
    if (error instanceof AppError && error.code === 'internal_error') return undefined;
    throw error;
  }
}

/**
 * A proxy may have taken off the path of PUBLIC_URL and changed the host: the address that the provider called begins
 * with PUBLIC_URL all the same.
 */
function calledUrl({ publicUrl }: WebhookOptions, pathAndQuery: string): string | undefined {
  return publicUrl === undefined ? undefined : `${publicUrl}${pathAndQuery}`;
}

/** Accepts any of a channel's names. */
function channelOrRefuse(name: string): MessagingChannel {
  const channel = Channel.safeParse(name).data;
  return channel !== undefined && isMessagingChannel(channel) ? channel : refuse();
}

function refuse(): never {
  throw new AppError('invalid_signature');
}
