import {
  AppError,
  toAppName,
  channelSynonyms,
  clip,
  fitsMessage,
  isMessagingChannel,
  limits,
  readRecipient,
  type AcceptedTurn,
  type ChannelName,
  type WaitingHandoff,
} from '@concierge/contract';
import { CODE_MIN_CHARACTERS, buildHandoffCode, findCommandPrefix, type HandoffRequests, type TurnRun } from '@concierge/turn';

const LISTED_MAX = 20;
const WORDS_MAX_CHARACTERS = 200;

const commandLine = /^\s*[/!](?<name>handoffs|answer|resume)(?:@\w+)?(?:\s+(?<rest>[^]*))?$/iu;

/** Whether the text begins with the name of a command; the sender does not matter. */
export function looksLikeCommand(text: string): boolean {
  return commandLine.test(text);
}

type Desk = Pick<HandoffRequests, 'waiting' | 'answer' | 'giveBack'>;
type Waiting = Awaited<ReturnType<Desk['waiting']>>['items'];

/**
 * Lets the one staff member whom the tenant's settings name answer and give back conversations from their own channel.
 * Text of any other sender is text, and so is what comes in by the API, where the holder of a key for cs may use any
 * sender's name.
 */
export class HandoffCommands {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /**
   * Runs the command in the turn's text and returns its outcome; undefined when it is no command, or not from this
   * staff member.
   */
  async run(run: TurnRun): Promise<string | undefined> {
    const { name, rest = '' } = commandLine.exec(run.turn.text)?.groups ?? {};
    if (name === undefined || !(await mayCommand(run))) return undefined;
    const { items } = await this.#desk.waiting(run.scope, limits.sessionsListMax);
    try {
      switch (name.toLowerCase()) {
        case 'answer':
          return await this.#answer(run, items, rest);
        case 'resume':
          return await this.#resume(run, items, rest);
        default:
          return renderList(items, run.turn.channel);
      }
    } catch (error) {
      if (error instanceof AppError && error.status < 500) return error.message;
      throw error;
    }
  }

  async #answer(run: TurnRun, items: Waiting, rest: string): Promise<string> {
    const { code = '', text = '' } = /^(?<code>\S*)\s*(?<text>[^]*)$/u.exec(rest)?.groups ?? {};
    const found = pick(items, code, run.turn.channel);
    if (typeof found === 'string') return found;
    const prefix = findCommandPrefix(run.turn.channel);
    if (text.trim() === '') return `What should be answered? ${prefix}answer ${code} and your text.`;
    if (!fitsMessage(text)) return 'That is too long to be sent.';
    const dedupeId = `command:${run.turn.turnId}`;
    await this.#desk.answer(run.scope, found.sessionId, { text, by: toContactActor(run.turn), dedupeId, keyId: null });
    return `Passed on to ${renderTitle(found)}. The conversation stays with you until ${prefix}resume ${code}.`;
  }

  async #resume(run: TurnRun, items: Waiting, rest: string): Promise<string> {
    const found = pick(items, rest.trim(), run.turn.channel);
    if (typeof found === 'string') return found;
    await this.#desk.giveBack(run.scope, found.sessionId, toContactActor(run.turn));
    return `Given back: the agent answers ${renderTitle(found)} from the next message on.`;
  }
}

/** Whether the provider vouches that the settings' staff member wrote it in a private chat. */
async function mayCommand({ scope, turn }: TurnRun): Promise<boolean> {
  const notify = (await scope.settings()).handoff?.notify;
  if (notify === undefined || turn.origin !== 'webhook' || turn.channelMessage?.isGroup === true) return false;
  const channel = channelSynonyms[notify.channel];
  const to = readRecipient(channel, notify.to);
  if (turn.channel !== channel || to === undefined) return false;
  return turn.sender === (await scope.contacts.findCanonicalSender(channel, to));
}

/**
 * The handoff that the code means, or why there is none. Never a guess: a wrong one would send a message to a stranger.
 */
function pick(items: Waiting, code: string, channel: ChannelName): WaitingHandoff | string {
  const wanted = code.toLowerCase();
  const found = wanted.length < CODE_MIN_CHARACTERS ? [] : items.filter(({ sessionId }) => sessionId.startsWith(wanted));
  const [first] = found;
  if (found.length === 1 && first !== undefined) return first;
  const why =
    found.length > 1
      ? `More than one conversation begins with ${code}.`
      : `Nothing waits under "${code}": it was given back, its time is over, or the code is another.`;
  return `${why}\n\n${renderList(items, channel)}`;
}

function renderList(items: Waiting, channel: ChannelName): string {
  if (items.length === 0) return 'No conversation waits for a person.';
  const prefix = findCommandPrefix(channel);
  const ids = items.map(({ sessionId }) => sessionId);
  const lines = items.slice(0, LISTED_MAX).map((item) => {
    const last = item.lastMessage === null ? '' : `\n  ${item.lastMessage.from}: ${shorten(item.lastMessage.text)}`;
    return `${buildHandoffCode(item.sessionId, ids)}  ${renderTitle(item)}, since ${item.since}\n  why: ${shorten(item.reason)}${last}`;
  });
  const more = items.length > LISTED_MAX ? [`and ${String(items.length - LISTED_MAX)} more`] : [];
  return [
    'Waiting for a person, the longest wait first:',
    ...lines,
    ...more,
    '',
    `${prefix}answer <code> <text>, ${prefix}resume <code>`,
  ].join('\n');
}

function renderTitle({ title, channel, sessionId }: WaitingHandoff): string {
  const where = channel === null ? '' : ` on ${isMessagingChannel(channel) ? toAppName(channel) : channel}`;
  return `"${title ?? sessionId}"${where}`;
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/gu, ' ').trim();
  return clip(line, WORDS_MAX_CHARACTERS);
}

function toContactActor({ channel, sender }: AcceptedTurn): {
  readonly kind: 'contact';
  readonly channel: ChannelName;
  readonly sender: string;
} {
  return { kind: 'contact', channel, sender: sender ?? '' };
}
