import type { z } from 'zod';
import type { InvalidField } from './app-error.ts';
import { limits } from '../limits.ts';

/** A message may name what was sent: no answer gets long because a request was. */
const MESSAGE_MAX_CHARACTERS = 300;

/** What is wrong with a value and where, for the one who sent it; of many problems the first. */
export function invalidFields(error: Pick<z.ZodError, 'issues'>): InvalidField[] {
  return error.issues
    .slice(0, limits.invalidFieldsMax)
    .map(({ path, message }) => ({ path: path.map(String).join('.'), message: cut(message) }));
}

/** The same on one line. */
export function invalidFieldsText(error: Pick<z.ZodError, 'issues'>): string {
  return invalidFields(error)
    .map((field) => invalidFieldText(field))
    .join('; ');
}

/** An error in the value as a whole has an empty path, and nothing stands before the message. */
export function invalidFieldText({ path, message }: InvalidField): string {
  return path === '' ? message : `${path}: ${message}`;
}

function cut(message: string): string {
  return message.length <= MESSAGE_MAX_CHARACTERS ? message : `${message.slice(0, MESSAGE_MAX_CHARACTERS)}\u2026`;
}
