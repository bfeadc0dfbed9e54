import type { Usage } from './chat.ts';
import type { TurnStep } from './session.ts';
import type { TurnStepView } from './turn.ts';

/** A finished step as lists, records and the console show it; null for a step that is only bookkeeping. */
export function viewStep(step: TurnStep): TurnStepView | null {
  switch (step.kind) {
    case 'prompt':
    case 'said':
    case 'intent':
    case 'nested_intent':
      return null;
    case 'assistant':
      return { kind: 'model', name: step.usage.model, ...viewTimes(step), isError: false, ...viewUsage(step.usage) };
    case 'result':
      return { kind: 'tool', name: step.message.name, ...viewTimes(step), isError: step.message.isError };
    case 'nested_result':
      return { kind: 'tool', name: step.name, within: step.within, ...viewTimes(step), isError: step.isError };
    case 'compaction': {
      const name = step.summary === null ? 'prune' : 'summarise';
      return { kind: 'compaction', name, ...viewTimes(step), isError: step.failed === true, ...viewUsage(step.usage) };
    }
  }
}

export function viewSteps(steps: readonly TurnStep[]): TurnStepView[] {
  return steps.map((step) => viewStep(step)).filter((view) => view !== null);
}

function viewTimes({
  startedAtMs,
  durationMs,
}: {
  startedAtMs: number;
  durationMs: number;
}): Pick<TurnStepView, 'startedAt' | 'durationMs'> {
  return { startedAt: new Date(startedAtMs).toISOString(), durationMs: Math.max(0, Math.round(durationMs)) };
}

function viewUsage(usage: Usage | null): Pick<TurnStepView, 'usage'> {
  return usage === null ? {} : { usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens } };
}
