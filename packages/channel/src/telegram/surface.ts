import { writeMarkup, type Dialect } from '../outbound/dialect.ts';
import { utf16Units } from '../outbound/plain-text.ts';
import { textOf, type RichText } from '../outbound/rich-text.ts';
import type { Surface } from '../outbound/surface.ts';

const tag = (name: string) => (inside: string) => `<${name}>${inside}</${name}>`;

const markup = {
  escape: escapeHtml,
  wrap: {
    quote: tag('blockquote'),
    pre: (inside: string, language: string) =>
      /^[\w+#.-]+$/u.test(language) ? `<pre><code class="language-${language}">${inside}</code></pre>` : tag('pre')(inside),
    link: (inside: string, url: string) => `<a href="${escapeHtml(url).replaceAll('"', '&quot;')}">${inside}</a>`,
    bold: tag('b'),
    italic: tag('i'),
    strike: tag('s'),
    code: tag('code'),
  },
};

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function render(rich: RichText): string {
  return writeMarkup(rich, markup);
}

/**
 * HTML, in which three signs are escaped, and not MarkdownV2, in which eighteen are. Tags do not count: the limit is on
 * what is left after reading them.
 */
const dialect: Dialect = { maxLength: 4096, render, lengthOf: (rich) => utf16Units(textOf(rich)) };

const chatPace = { conversationIntervalMs: 1000, conversationBurst: 1, bindingPerSecond: 30 };
/** Telegram takes 20 messages a minute in a group, and limits groups each by itself. */
const groupPace = { ...chatPace, conversationIntervalMs: 3000, isOwnLimit: true };

export const telegramSurface: Surface = {
  name: 'telegram',
  dialect,
  // The ids of groups are negative.
  pace: (to) => (to.startsWith('-') ? groupPace : chatPace),
  replyWindowMs: null,
};
