import { say, type RecordedRequest, type Script } from '@concierge/testing';

/** Messages carry numbers, and an answer says which ones it has heard: who reads the answers can tell what was lost, doubled or put in another order. */
export function numbered(number: number): string {
  return `message #${String(number)}`;
}

/** Says the numbers of the messages it is asked to answer, in their order. */
export function answerNumbers({ userText }: Pick<RecordedRequest, 'userText'>): Script {
  return [say(`heard ${numbersIn(userText).join(' ')}`)];
}

/** The numbers in a message or in an answer. */
export function numbersIn(text: string): number[] {
  const heard = /^heard (?<numbers>[\d ]+)$/u.exec(text.trim())?.groups?.['numbers'];
  if (heard !== undefined) return heard.split(' ').map(Number);
  return [...text.matchAll(/message #(?<number>\d+)/gu)].map(({ groups }) => Number(groups?.['number']));
}
