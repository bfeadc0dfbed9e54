import {
  ZERO_WIDTH_SPACE,
  aroundLines,
  beforeLines,
  fenced,
  spellOutLinks,
  ticked,
  writeMarkup,
  type Dialect,
  utf16Units,
} from '../outbound/dialect.ts';
import type { RichText } from '../outbound/rich-text.ts';
import { DAY_WINDOW_MS, type SendingRules } from '../outbound/sending-rules.ts';

const markup = {
  escape: (text: string) => text,
  parting: ZERO_WIDTH_SPACE,
  wrap: {
    quote: beforeLines('> '),
    pre: fenced,
    bold: aroundLines('*'),
    italic: aroundLines('_'),
    strike: aroundLines('~'),
    code: ticked,
  },
};

function render(rich: RichText): string {
  return writeMarkup(spellOutLinks(rich), markup);
}

/** WhatsApp has no way to escape its signs: a lone `*` stays one, as when it is typed. */
export function whatsAppDialect(maxLength: number): Dialect {
  return { maxLength, render, lengthOf: (rich) => utf16Units(render(rich)) };
}

export const whatsAppRules: SendingRules = {
  name: 'whatsapp',
  dialect: whatsAppDialect(4096),
  pace: () => ({ conversationIntervalMs: 6000, conversationBurst: 45, bindingPerSecond: 80 }),
  replyWindowMs: DAY_WINDOW_MS,
};
