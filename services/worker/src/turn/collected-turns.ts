import type { Conversation } from '@concierge/agent';
import { codePoints, limits, type AcceptedTurn, type Session, type TurnRecord } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';
import { looksLikeCommand } from './handoff-commands.ts';

/** The turn that runs, and those that are answered with it. */
export type TurnsToAnswer = readonly [AcceptedTurn, ...AcceptedTurn[]];

/** Between the texts of two messages: a blank line. */
const SEPARATOR_CHARACTERS = 2;

/**
 * The turns whose messages one that collects answers, its own first. Those behind it that collect, too, go with it
 * while all together stay within what one message may be; the first that does not fit is the next turn's head, or its
 * album is. Chosen once: an attempt that recovers takes the same. `session`: as it was before this turn.
 */
export async function collectTurns(run: TurnRun, session: Session, conversation: Conversation): Promise<TurnsToAnswer> {
  const { scope, turn } = run;
  if (conversation.hasPrompt) return [turn, ...(await turnsNamed(scope, conversation.joined))];
  // A waiting turn may be answered already: its worker died after the answer and left it in the inbox, and an emptied
  // Redis may have put this turn, which is older, before it.
  const answered = new Set(session.turns.map(({ id }) => id));
  // With the first one that is too many: an album may go on in it.
  const behind = await run.waitingBehind(limits.collectMaxMessages);
  const waiting = await turnsNamed(
    scope,
    behind.filter((turnId) => !answered.has(turnId)),
  );
  return [turn, ...(await thatFit(scope, turn, waiting))];
}

/** The named turns that are still in the inbox. */
export async function turnsNamed(scope: TenantScope, turnIds: readonly string[]): Promise<AcceptedTurn[]> {
  const turns = await Promise.all(turnIds.map(async (turnId) => scope.inbox.read(turnId)));
  return turns.filter((turn) => turn !== undefined);
}

/** What remains of a turn that another one has answered: it ended with that one, and nothing was spent on it. */
export function toCollectedRecord(turn: AcceptedTurn, { id: joinedTo, trace: _trace, ...record }: TurnRecord): TurnRecord {
  return {
    ...record,
    id: turn.turnId,
    origin: turn.origin,
    acceptedAt: new Date(turn.acceptedAtMs).toISOString(),
    usage: { inputTokens: 0, outputTokens: 0 },
    models: [],
    steps: [],
    requestHash: turn.requestHash,
    keyId: turn.keyId,
    joinedTo,
  };
}

/** Ids of all turns that were answered together with this one, its own included. */
export function answeredTogether({ turns }: Session, turnId: string): string[] {
  const findHead = ({ id, joinedTo }: TurnRecord): string => joinedTo ?? id;
  const own = turns.findLast(({ id }) => id === turnId);
  return own === undefined ? [] : turns.filter((record) => findHead(record) === findHead(own)).map(({ id }) => id);
}

async function thatFit(scope: TenantScope, head: AcceptedTurn, waiting: readonly AcceptedTurn[]): Promise<AcceptedTurn[]> {
  const joined: AcceptedTurn[] = [];
  let characters = codePoints(head.text);
  let media = countMedia(head);
  for (const turn of waiting) {
    if (!isOfOneConversation(head, turn)) break;
    // A cancelled turn ends by itself, in its own place.
    if (await scope.inbox.isCancelled(turn.turnId)) continue;
    characters += SEPARATOR_CHARACTERS + codePoints(turn.text);
    media += countMedia(turn);
    const isFull = joined.length === limits.collectMaxMessages - 1;
    if (isFull || characters > limits.messageMaxCharacters || media > limits.attachmentsMax) return leaveOutAlbum(turn, head, joined);
    joined.push(turn);
  }
  return joined;
}

/** The pictures of an album are answered together: one that does not fit takes those before it to the next turn. */
function leaveOutAlbum({ channelMessage }: AcceptedTurn, head: AcceptedTurn, joined: readonly AcceptedTurn[]): AcceptedTurn[] {
  const albumId = channelMessage?.albumId;
  const isOfAlbum = (turn: AcceptedTurn): boolean => albumId !== undefined && turn.channelMessage?.albumId === albumId;
  const begin = isOfAlbum(head) ? -1 : joined.findIndex(isOfAlbum);
  return joined.slice(0, begin === -1 ? joined.length : begin);
}

/** Compares sender, place and rights: whether both could have been one message. */
function isOfOneConversation(head: AcceptedTurn, other: AcceptedTurn): boolean {
  // A command is executed alone; among other text it would be none.
  if (looksLikeCommand(other.text)) return false;
  if (other.collects !== true || other.grant !== undefined || other.tools !== undefined) return false;
  return (['sender', 'agent', 'authority', 'origin'] as const).every((fact) => other[fact] === head[fact]) && isOfOneAddress(head, other);
}

function isOfOneAddress({ channelMessage: one }: AcceptedTurn, { channelMessage: other }: AcceptedTurn): boolean {
  return one?.address.to === other?.address.to && one?.address.thread === other?.address.thread;
}

function countMedia({ attachments, channelMessage }: AcceptedTurn): number {
  return attachments.length + (channelMessage?.media.length ?? 0);
}
