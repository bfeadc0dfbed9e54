import type { Question } from '../../../src/chat/chat-turn.ts';
import { formatRoute, type Route } from '../../../src/chat/route.ts';

const openings = new Map<string, Question>();

/** The conversation at this address begins with this message, when it is opened next. */
export function setOpening(route: Route, message: Question): void {
  openings.set(formatRoute(route), message);
}

export function takeOpening(route: Route): Question | undefined {
  const path = formatRoute(route);
  const opening = openings.get(path);
  openings.delete(path);
  return opening;
}
