import { toNotesOwner, fitContext, type ContextBudget } from '@concierge/agent';
import { limits, type ModelFacts } from '@concierge/contract';
import { estimateTokens } from '@concierge/model';
import type { TurnRun } from '@concierge/turn';
import { isCrowded } from './context-report.ts';
import type { TurnAgent } from '../turn/turn-agent.ts';
import type { ReportWarning } from '../turn/turn-warnings.ts';

export type PromptContext = ReturnType<typeof fitContext>;

/**
 * What tenants write of a turn's prompt, as it is now and as much of it as has its place there. The owner is warned of
 * the rest.
 */
export async function promptContext(
  run: TurnRun,
  { agent, facts, warn }: { readonly agent: TurnAgent; readonly facts: ModelFacts; readonly warn: ReportWarning | undefined },
): Promise<PromptContext> {
  const { name, access, part } = agent;
  const loaded = await run.scope.context.load({
    agent: name,
    sender: toNotesOwner(run.turn),
    memory: access === 'cs' ? 'contact' : 'owner',
  });
  const context = fitContext({ ...loaded, part }, { contextWindow: facts.contextWindow, estimateTokens, agent: name, access });
  for (const { name: file, reason } of loaded.unusable) {
    const message = `${ownerOf(file, access)} is not in the prompt: ${reason}`;
    warn?.(run, { code: 'context_unreadable', message, subject: ownerOf(file, access) });
  }
  for (const { name: file, shownBytes, bytes } of context.cuts) {
    const why =
      bytes > limits.contextFileMaxBytes
        ? `a context file may have ${String(limits.contextFileMaxBytes)}`
        : 'together they may take a quarter of the model’s window';
    const message = `${ownerOf(file, access)} has ${String(bytes)} bytes, and only the first ${String(shownBytes)} are in the prompt: ${why}.`;
    warn?.(run, { code: 'context_cut', message, subject: ownerOf(file, access) });
  }
  if (context.skillsLeftOut > 0) {
    const message = `${String(context.skillsLeftOut)} skills are not named in the prompt: together they may take a quarter of the model’s window.`;
    warn?.(run, { code: 'context_cut', message, subject: 'skills' });
  }
  return context;
}

/** Which of the two: the owner's own, or that of the contact of the turn. */
function ownerOf(file: string, access: TurnAgent['access']): string {
  return access === 'cs' && (file === 'MEMORY.md' || file === 'USER.md') ? `${file} of a contact` : file;
}

export function warnOfSmallWindow(
  run: TurnRun,
  {
    budget,
    model,
    warn,
  }: {
    readonly budget: ContextBudget;
    readonly model: { readonly ref: string; readonly facts: ModelFacts };
    readonly warn: ReportWarning | undefined;
  },
): void {
  if (warn === undefined || !isCrowded(budget)) return;
  const { agent } = run.turn;
  const message = `Tools and prompt of the agent ${agent} take about ${String(budget.overheadTokens())} tokens, and ${model.ref} has a window of ${String(model.facts.contextWindow)}: conversations are shortened all the time. Give the agent fewer tools or a model with a larger window.`;
  warn(run, { code: 'window_small', message, subject: `${agent} ${model.ref}` });
}
