import { SandboxUnavailable } from '../sandbox.ts';

const NOT_FOUND = 404;
const CONFLICT = 409;

/** The engine does not know the object. */
export function isMissing(error: unknown): boolean {
  return readStatus(error) === NOT_FOUND;
}

/** The object is missing, not running, or being removed already. */
export function isGone(error: unknown): boolean {
  return isMissing(error) || readStatus(error) === CONFLICT;
}

/** A message that the model and the operator may read; the engine's own message is in the cause. */
export function engineError(error: unknown, image: string): SandboxUnavailable {
  if (error instanceof SandboxUnavailable) return error;
  const status = readStatus(error);
  if (status === NOT_FOUND) return new SandboxUnavailable(`The container engine has no image ${image}.`, { cause: error });
  if (status === undefined) return new SandboxUnavailable('The container engine does not answer.', { cause: error });
  return new SandboxUnavailable('The container engine could not make the sandbox.', { cause: error });
}

function readStatus(error: unknown): number | undefined {
  return typeof error === 'object' && error !== null && 'statusCode' in error && typeof error.statusCode === 'number'
    ? error.statusCode
    : undefined;
}
