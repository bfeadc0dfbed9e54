import { say, type RecordedRequest, type Script } from '@concierge/testing';

/**
 * Messages carry numbers, and an answer lists the numbers it covers, so that answers show what was lost, doubled or
 * reordered.
 */
export function numbered(number: number): string {
  return `message #${String(number)}`;
}

/** Answers with the numbers of the messages in the request, in their order. */
export function answerNumbers({ userText }: Pick<RecordedRequest, 'userText'>): Script {
  return [say(`heard ${numbersIn(userText).join(' ')}`)];
}

/** The numbers in a message or in an answer. */
export function numbersIn(text: string): number[] {
  const heard = /^heard (?<numbers>[\d ]+)$/u.exec(text.trim())?.groups?.['numbers'];
  if (heard !== undefined) return heard.split(' ').map(Number);
  return [...text.matchAll(/message #(?<number>\d+)/gu)].map(({ groups }) => Number(groups?.['number']));
}
