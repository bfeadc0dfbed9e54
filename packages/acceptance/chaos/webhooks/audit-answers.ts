import type { Finding } from '../audit/finding.ts';

/** What one contact wrote and was sent, both as numbers of messages. */
export interface Correspondence {
  readonly person: string;
  /** In the order in which they were acknowledged. */
  readonly acknowledged: readonly number[];
  /** In the order of the answers that reached the contact; an answer to several is several. */
  readonly heard: readonly number[];
  /** Those that the service reports as perhaps sent. */
  readonly unsure: ReadonlySet<number>;
  /** In the order in which they stand in the session file; undefined: not looked at. */
  readonly saved?: readonly number[];
}

/**
 * I1, I2, I19: each message is answered once, and in the order of their acknowledgements, on the phone and in the file.
 */
export function auditAnswers({ person, acknowledged, heard, unsure, saved = [] }: Correspondence): Finding[] {
  const finding = (invariant: Finding['invariant'], kind: Finding['kind'], detail: string): Finding => ({
    invariant,
    kind,
    subject: person,
    detail,
  });
  const isHeardTwice = (number: number): boolean => heard.indexOf(number) !== heard.lastIndexOf(number);
  const lost = acknowledged.filter((number) => !heard.includes(number) && !unsure.has(number));
  const places = new Map(acknowledged.map((number, place) => [number, place]));
  const isInOrder = (numbers: readonly number[]): boolean => {
    const order = numbers.map((number) => places.get(number) ?? -1);
    return order.every((place, at) => at === 0 || place >= (order[at - 1] ?? 0));
  };
  return [
    ...lost.map((number) => finding('I1', 'unanswered', `no answer to message ${String(number)}`)),
    ...acknowledged.filter(isHeardTwice).map((number) => finding('I2', 'doubled', `message ${String(number)} was answered twice`)),
    ...(isInOrder(heard) ? [] : [finding('I19', 'disorder', `acknowledged ${acknowledged.join(' ')}, answered ${heard.join(' ')}`)]),
    ...(isInOrder(saved) ? [] : [finding('I19', 'disorder', `acknowledged ${acknowledged.join(' ')}, saved as ${saved.join(' ')}`)]),
  ];
}
