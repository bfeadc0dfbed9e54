import { AppError } from '@concierge/contract';
import { ModelError, type ModelErrorKind } from '@concierge/model';
import { LeaseLost, TurnCancelled, TurnTimedOut } from '@concierge/turn';
import type { TurnOutcome } from './ended-session.ts';
import { AgentUnusable } from './turn-agent.ts';

/** What a client is told; what the provider said goes to the log. */
const messages: Record<ModelErrorKind, string> = {
  context_overflow: 'The conversation is too long for the model, even after it was shortened.',
  rate_limited: 'The model provider is refusing requests for now. Try again later.',
  unavailable: 'The model provider cannot be reached. Try again later.',
  rejected: 'The model provider refused the request. Check the model and its key.',
  timeout: 'The model provider did not answer in time. Try again later.',
};

/**
 * The end that an error of the loop stands for. Rethrows what is no end: a lease that was lost, a worker that drains, a fault of
 * the machine or of our own. The turn is then started again after its last finished step.
 */
export function outcomeOf(error: unknown, signal: AbortSignal): TurnOutcome {
  if (error instanceof LeaseLost) throw error;
  if (signal.aborted) return stoppedOutcome(signal.reason);
  if (error instanceof ModelError) return { status: 'failed', code: 'provider_error', message: messages[error.kind] };
  if (error instanceof AgentUnusable) return { status: 'failed', code: error.code, message: error.message };
  if (error instanceof AppError && error.code === 'provider_error') return { status: 'failed', code: error.code, message: error.message };
  throw error;
}

function stoppedOutcome(reason: unknown): TurnOutcome {
  if (reason instanceof TurnCancelled) return { status: 'cancelled' };
  if (reason instanceof TurnTimedOut) return { status: 'failed', code: 'turn_timeout', message: 'The turn took too long and was stopped.' };
  throw reason;
}

/** What an open tool call's result says after the turn ended so. */
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
