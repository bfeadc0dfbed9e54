import { viewStep, type ModelUsage, type TurnStep, type TurnStepView, type Usage } from '@concierge/contract';

/** What a turn has cost and when: counted from the same steps that make the conversation, once per model call. */
export class TurnUsage {
  readonly #models = new Map<string, ModelUsage>();
  readonly #steps: TurnStepView[] = [];
  #startedAt: string | null = null;
  #firstTextAtMs: number | null = null;

  get steps(): readonly TurnStepView[] {
    return this.#steps;
  }

  get models(): ModelUsage[] {
    return [...this.#models.values()];
  }

  get usage(): Usage {
    const models = this.models;
    return {
      inputTokens: models.reduce((sum, model) => sum + model.inputTokens, 0),
      outputTokens: models.reduce((sum, model) => sum + model.outputTokens, 0),
    };
  }

  /** When the first attempt started; null before the prompt was made. */
  get startedAt(): string | null {
    return this.#startedAt;
  }

  get firstTextAt(): string | null {
    return this.#firstTextAtMs === null ? null : new Date(this.#firstTextAtMs).toISOString();
  }

  /** Text of a reply that never became a step counts as first text too. */
  heardAt(ms: number): void {
    this.#firstTextAtMs ??= ms;
  }

  count(step: TurnStep): void {
    const view = viewStep(step);
    if (view !== null) this.#steps.push(view);
    switch (step.kind) {
      case 'prompt':
        this.#begin(step.message.at);
        return;
      case 'said':
        this.#begin(step.message.at);
        this.heardAt(Date.parse(step.message.at));
        return;
      case 'assistant':
        if (step.firstTextAtMs !== null) this.heardAt(step.firstTextAtMs);
        this.#addUsage(step.usage);
        return;
      case 'compaction':
        if (step.usage !== null) this.#addUsage(step.usage);
        return;
      case 'intent':
      case 'result':
      case 'nested_intent':
      case 'nested_result':
        return;
    }
  }

  #begin(at: string): void {
    this.#startedAt ??= at;
  }

  #addUsage(usage: ModelUsage): void {
    const before = this.#models.get(usage.model);
    this.#models.set(usage.model, before === undefined ? usage : sumUsage(before, usage));
  }
}

function sumUsage(left: ModelUsage, right: ModelUsage): ModelUsage {
  return {
    model: left.model,
    calls: left.calls + right.calls,
    inputTokens: left.inputTokens + right.inputTokens,
    outputTokens: left.outputTokens + right.outputTokens,
    cachedInputTokens: left.cachedInputTokens + right.cachedInputTokens,
    costUsd: left.costUsd === null && right.costUsd === null ? null : (left.costUsd ?? 0) + (right.costUsd ?? 0),
  };
}
