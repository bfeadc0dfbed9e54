import { createHmac, randomUUID } from 'node:crypto';
import type { TelegramSettings, WhatsAppSettings } from '@concierge/contract';
import type { TestGateway } from './test-gateway.ts';

export const whatsApp: WhatsAppSettings = {
  phoneNumberId: '106540352242922',
  accessToken: 'access-token',
  verifyToken: 'verify-token',
  appSecret: 'app-secret',
};
export const telegram: TelegramSettings = {
  botToken: '7000000001:token',
  botUsername: 'shop_bot',
  secretToken: 'secret-token',
};

export interface WhatsAppText {
  readonly from: string;
  readonly text: string;
  readonly id?: string;
  /** The sender's business-scoped id. */
  readonly userId?: string;
  readonly name?: string;
}

/** A delivery as WhatsApp makes it. */
export function whatsAppBody(texts: readonly WhatsAppText[], phoneNumberId = whatsApp.phoneNumberId): string {
  const messages = texts.map(({ from, text, id = `wamid.${randomUUID()}`, userId }) => ({
    from,
    ...(userId !== undefined && { from_user_id: userId }),
    id,
    timestamp: '1760000000',
    type: 'text',
    text: { body: text },
  }));
  const contacts = texts.map(({ from, userId, name }) => ({
    wa_id: from,
    ...(userId !== undefined && { user_id: userId }),
    ...(name !== undefined && { profile: { name } }),
  }));
  const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: phoneNumberId }, contacts, messages };
  return JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: 'waba', changes: [{ field: 'messages', value }] }] });
}

export interface SignedBody {
  readonly body: string;
  readonly appSecret?: string;
}

export async function postWhatsApp(
  gateway: TestGateway,
  tenantId: string,
  { body, appSecret = whatsApp.appSecret }: SignedBody,
): Promise<Response> {
  const signature = createHmac('sha256', appSecret).update(body).digest('hex');
  const headers = { 'Content-Type': 'application/json', 'X-Hub-Signature-256': `sha256=${signature}` };
  return gateway.ask(undefined, `/webhook/whatsapp/${tenantId}`, { method: 'POST', headers, body });
}

export async function postTelegram(gateway: TestGateway, tenantId: string, update: object): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', 'X-Telegram-Bot-Api-Secret-Token': telegram.secretToken };
  return gateway.ask(undefined, `/webhook/telegram/${tenantId}`, { method: 'POST', headers, body: JSON.stringify(update) });
}
