import { plainDialect, utf16Units } from '../outbound/plain-text.ts';
import { DAY_WINDOW_MS, type Surface } from '../outbound/surface.ts';
import { whatsAppDialect } from '../whatsapp/surface.ts';

/** The length of one message; beyond 160 characters Twilio sends an SMS in segments, which the phone puts together. */
export const BODY_MAX_UNITS = 1600;

const WHATSAPP_PREFIX = 'whatsapp:';

/** Addresses of WhatsApp begin with its name; all others are numbers of telephones. */
export function isWhatsApp(address: string): boolean {
  return address.startsWith(WHATSAPP_PREFIX);
}

export const smsSurface: Surface = {
  name: 'sms',
  dialect: plainDialect({ maxLength: BODY_MAX_UNITS, count: utf16Units }),
  isNumbered: true,
  // An ordinary number sends one segment in a second; Twilio queues what is more.
  pace: () => ({ conversationIntervalMs: 1000, conversationBurst: 3, bindingPerSecond: 10 }),
  replyWindowMs: null,
};

export const whatsAppSurface: Surface = {
  name: 'twilio-whatsapp',
  dialect: whatsAppDialect(BODY_MAX_UNITS),
  pace: () => ({ conversationIntervalMs: 6000, conversationBurst: 45, bindingPerSecond: 80 }),
  replyWindowMs: DAY_WINDOW_MS,
};
