import { limits } from '@concierge/contract';
import type { KeptMessage } from './messaging-view.ts';

/** What became of it, in words that leave no room for "it has arrived". */
export function describeKept({ message, isNew, isPaused, window }: KeptMessage, app: string): string {
  const { id, to, template, expiresAt } = message;
  const what = template === undefined ? 'Message' : `Template "${template.name}"`;
  if (isPaused) {
    return `WITHHELD. ${what} ${id} for ${to} on ${app}: a person has this contact’s conversation (see handoff), so it is not sent, not later either. Send it again once the conversation is resumed, if it is still wanted.`;
  }
  const hours = String(limits.outboxTtlSeconds / 3600);
  return [
    `ON ITS WAY. ${what} ${id} for ${to} on ${app} ${isNew ? 'is accepted' : 'had been accepted by this same call'} and goes out after what was said there before, mostly within seconds.`,
    `Whether it arrives is not known yet: do not say that it has. It is dropped when the app does not take it by ${expiresAt} (${hours} hours).`,
    ...(window.state === 'open' ? [`Reply window: open until ${new Date(window.untilMs).toISOString()}.`] : []),
  ].join('\n');
}
