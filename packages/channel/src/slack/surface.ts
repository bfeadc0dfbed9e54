import { ZERO_WIDTH_SPACE, aroundLines, beforeLines, fenced, ticked, writeMarkup, type Dialect } from '../outbound/dialect.ts';
import { utf16Units } from '../outbound/plain-text.ts';
import type { RichText } from '../outbound/rich-text.ts';
import type { Surface } from '../outbound/surface.ts';

const markup = {
  escape: escapeText,
  parting: ZERO_WIDTH_SPACE,
  wrap: {
    // Inside, > is written as an entity: only these open a quote.
    quote: beforeLines('> '),
    pre: fenced,
    link: (inside: string, url: string) =>
      `<${escapeText(url).replaceAll('|', '%7C')}|${inside.replaceAll('|', '¦').replaceAll('\n', ' ')}>`,
    bold: aroundLines('*'),
    italic: aroundLines('_'),
    strike: aroundLines('~'),
    code: ticked,
  },
};

/** Without it the text of a model could call everybody of a workspace (`<!channel>`). */
export function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function render(rich: RichText): string {
  return writeMarkup(rich, markup);
}

const dialect: Dialect = { maxLength: 4000, render, lengthOf: (rich) => utf16Units(render(rich)) };

export const slackSurface: Surface = {
  name: 'slack',
  dialect,
  pace: () => ({ conversationIntervalMs: 1000, conversationBurst: 1, bindingPerSecond: 30 }),
  replyWindowMs: null,
};
