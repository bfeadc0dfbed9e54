import type { Surface } from './surface.ts';

/** How fast a provider lets one binding send. */
export interface Pace {
  /** Between two messages to the same conversation, once its burst is used up. */
  readonly conversationIntervalMs: number;
  readonly conversationBurst: number;
  /** From one number, page, bot or app. */
  readonly bindingPerSecond: number;
}

export const paces: Readonly<Record<Surface, Pace>> = {
  whatsapp: { conversationIntervalMs: 6000, conversationBurst: 45, bindingPerSecond: 80 },
  messenger: { conversationIntervalMs: 500, conversationBurst: 2, bindingPerSecond: 300 },
  instagram: { conversationIntervalMs: 500, conversationBurst: 2, bindingPerSecond: 100 },
  telegram: { conversationIntervalMs: 1000, conversationBurst: 1, bindingPerSecond: 30 },
  slack: { conversationIntervalMs: 1000, conversationBurst: 1, bindingPerSecond: 30 },
};

/** Telegram takes 20 messages a minute in a group, whose ids are negative. */
const TELEGRAM_GROUP_INTERVAL_MS = 3000;

export function paceOf(surface: Surface, to: string): Pace {
  const pace = paces[surface];
  return surface === 'telegram' && to.startsWith('-') ? { ...pace, conversationIntervalMs: TELEGRAM_GROUP_INTERVAL_MS } : pace;
}
