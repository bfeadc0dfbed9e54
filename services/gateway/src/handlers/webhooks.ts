import { AppError } from '@concierge/contract';
import type { Handlers } from '../http/call.ts';

/**
 * Channels are bound with the channel adapters. An unbound channel, an unknown tenant and a bad signature have one and the same
 * answer, and without an adapter there is no bound channel.
 */
export function webhookHandlers(): Pick<Handlers, 'verifyWebhook' | 'receiveWebhook'> {
  const refuse = (): never => {
    throw new AppError('invalid_signature');
  };
  return { verifyWebhook: refuse, receiveWebhook: refuse };
}
