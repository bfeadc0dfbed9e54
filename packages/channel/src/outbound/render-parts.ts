import { instagramDialect, messengerDialect } from '../messenger/render.ts';
import { slackDialect } from '../slack/render.ts';
import { telegramDialect } from '../telegram/render.ts';
import { whatsAppDialect } from '../whatsapp/render.ts';
import type { Dialect } from './dialect.ts';
import { readMarkdown } from './markdown.ts';
import { splitIntoParts, type Part } from './split.ts';
import type { Surface } from './surface.ts';

const dialects: Readonly<Record<Surface, Dialect>> = {
  whatsapp: whatsAppDialect,
  messenger: messengerDialect,
  instagram: instagramDialect,
  telegram: telegramDialect,
  slack: slackDialect,
};

/** Markdown as the messages that a provider takes, in order; none when nothing of it can be seen. */
export function renderParts(markdown: string, surface: Surface): Part[] {
  return splitIntoParts(readMarkdown(markdown), dialects[surface]);
}
