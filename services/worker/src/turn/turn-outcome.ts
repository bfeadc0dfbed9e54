import { AppError } from '@concierge/contract';
import { ModelError, type ModelErrorKind } from '@concierge/model';
import { LeaseLost, TurnCancelled, TurnTimedOut } from '@concierge/turn';
import type { TurnOutcome } from './ended-session.ts';
import { AgentUnusable } from './turn-agent.ts';

/** What a customer reads. The reason goes to the owner and to the log. */
const messages: Record<ModelErrorKind, string> = {
  context_overflow: 'The conversation is too long for the model, even after it was shortened.',
  rate_limited: 'The model provider is refusing requests for now. Try again later.',
  unavailable: 'The model provider cannot be reached. Try again later.',
  rejected: 'The model provider refused the request.',
  timeout: 'The model provider did not answer in time. Try again later.',
};

/** Kinds after which the same turn may end well later. */
const passing: ReadonlySet<ModelErrorKind> = new Set(['rate_limited', 'unavailable', 'timeout']);

/** The provider's code decides first: used-up credit comes as 429, an unknown model as 400. */
const reasonsByCode: Readonly<Record<string, string>> = {
  insufficient_quota: 'the credit at the provider is used up',
  billing_not_active: 'the account at the provider is not active',
  model_not_found: 'the provider has no such model, or not for this key',
  invalid_api_key: 'the provider does not accept the key',
};
const reasonsByStatus: Readonly<Record<number, string>> = {
  401: 'the provider does not accept the key',
  402: 'the credit at the provider is used up',
  403: 'the provider does not allow this key to use it',
  404: 'the provider has no such model, or not for this key',
};
const reasonsByKind: Record<ModelErrorKind, string> = {
  context_overflow: 'the conversation is too long for it',
  rate_limited: 'the provider refuses requests for now',
  unavailable: 'the provider cannot be reached',
  rejected: 'the provider refused the request',
  timeout: 'the provider did not answer in time',
};

/**
 * Why a model call failed, for owner and operator: `openai/gpt-5-mini: the provider does not accept the key (401
 * invalid_api_key)`. Nothing that the provider wrote.
 */
export function whyItFailed({ kind, model, status, code }: ModelError): string {
  const known = (code !== undefined && Object.hasOwn(reasonsByCode, code) && reasonsByCode[code]) || reasonsByStatus[status ?? 0];
  // The model was not asked at all: no provider of the file by this name has a key.
  const reason = known ?? (kind === 'rejected' && status === undefined && code === undefined ? NO_KEY : reasonsByKind[kind]);
  const facts = [status, code].filter((fact) => fact !== undefined).join(' ');
  return `${model ?? 'the model'}: ${reason}${facts === '' ? '' : ` (${facts})`}`;
}

const NO_KEY = 'the providers file has no usable key for it';

/**
 * The end that an error of the loop stands for; `isOwners`: the owner reads it. Rethrows what is no end: a lease that
 * was lost, a worker that drains, a fault of the machine or of our own. The turn is then started again after its last
 * finished step.
 */
export function outcomeOf(error: unknown, signal: AbortSignal, isOwners: boolean): TurnOutcome {
  if (error instanceof LeaseLost) throw error;
  if (signal.aborted) return stoppedOutcome(signal.reason);
  if (error instanceof ModelError) {
    const message = isOwners && error.kind === 'rejected' ? `${messages.rejected} ${whyItFailed(error)}.` : messages[error.kind];
    return { status: 'failed', code: 'provider_error', message, retryable: passing.has(error.kind) };
  }
  if (error instanceof AgentUnusable) return { status: 'failed', code: error.code, message: error.message };
  if (error instanceof AppError && error.code === 'provider_error') return { status: 'failed', code: error.code, message: error.message };
  throw error;
}

function stoppedOutcome(reason: unknown): TurnOutcome {
  if (reason instanceof TurnCancelled) return { status: 'cancelled' };
  if (reason instanceof TurnTimedOut) return { status: 'failed', code: 'turn_timeout', message: 'The turn took too long and was stopped.' };
  throw reason;
}

/** The result of an open tool call after the turn ended so. */
export function noteFor(outcome: TurnOutcome): string {
  return `No result: ${whyOf(outcome)} before this call finished. It may have taken effect.`;
}

function whyOf(outcome: TurnOutcome): string {
  switch (outcome.status) {
    case 'done':
      return 'a person took the conversation over';
    case 'cancelled':
      return 'the turn was cancelled';
    case 'failed':
      return 'the turn ended in an error';
  }
}
