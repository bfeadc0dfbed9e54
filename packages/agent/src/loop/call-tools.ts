import { toolCallEnd, toolCallStart, type ToolMessage } from '@concierge/contract';
import { CallProgress } from './call-progress.ts';
import type { OpenCall } from './conversation.ts';
import { journalCall } from './journal-call.ts';
import type { LoopRun, ToolOutcome } from './loop-run.ts';

/** Read-only calls that run at the same time. */
const PARALLEL_MAX = 8;
/** More calls in one reply are a model that went astray; they are answered with an error. */
const CALLS_PER_REPLY_MAX = 64;

export const OUTCOME_UNKNOWN =
  'Outcome unknown: the service stopped while this tool ran, so it may or may not have taken effect. Check before trying again.';

/**
 * Runs every open call of the last reply. Neighbours without side effects run together; a call with side effects runs
 * alone, after everything before it and before everything after it, as the model wrote them down. Rejects only when the
 * turn must stop.
 */
export async function callTools(run: LoopRun): Promise<void> {
  for (const batch of batchesOf(run, run.conversation.openCalls())) {
    run.signal.throwIfAborted();
    // All calls have settled before any failure is thrown: nothing of this turn runs after its end.
    const settled = await Promise.allSettled(batch.map((open) => runCall(run, open)));
    for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

function batchesOf(run: LoopRun, calls: readonly OpenCall[]): OpenCall[][] {
  const batches: OpenCall[][] = [];
  let open: OpenCall[] = [];
  for (const call of calls) {
    const runsAlone = run.tools.hasSideEffect(call.call.name);
    if (runsAlone || open.length === PARALLEL_MAX) open = [];
    if (open.length === 0) batches.push(open);
    open.push(call);
    if (runsAlone) open = [];
  }
  return batches;
}

async function runCall(run: LoopRun, open: OpenCall): Promise<void> {
  const { id, name } = open.call;
  const startedAtMs = Date.now();
  await journalCall(run, { kind: 'intent', callId: id, name }, run.startedCalls.has(id) ? [] : [toolCallStart(open.call)]);
  const outcome = await outcomeOf(run, open);
  const durationMs = Date.now() - startedAtMs;
  const message: ToolMessage = {
    id: run.conversation.resultId(open.index),
    turnId: run.conversation.turnId,
    at: new Date().toISOString(),
    role: 'tool',
    callId: id,
    name,
    output: outcome.output,
    isError: outcome.isError,
    ...(outcome.attachments !== undefined && { attachments: [...outcome.attachments] }),
  };
  await journalCall(run, { kind: 'result', message, startedAtMs, durationMs }, toolCallEnd(message, durationMs));
}

async function outcomeOf(run: LoopRun, open: OpenCall): Promise<ToolOutcome> {
  // An attempt that died had intended the call: a call without side effects runs again, any other may have happened
  // already.
  if (open.intended && run.tools.hasSideEffect(open.call.name)) return { output: unknownOutcome(open), isError: true };
  if (open.index >= CALLS_PER_REPLY_MAX) {
    return { output: `Not run: at most ${String(CALLS_PER_REPLY_MAX)} tool calls fit into one reply.`, isError: true };
  }
  using progress = new CallProgress(open.call, (event) => run.writer.emit(event));
  return await run.tools.call(open.call, run.signal, (delta) => progress.hear(delta));
}

/** Calls that its command made are journaled separately, so it is known how far they came. */
function unknownOutcome({ nested }: OpenCall): string {
  if (nested.length === 0) return OUTCOME_UNKNOWN;
  const states = { begun: 'outcome unknown', done: 'done', failed: 'failed' } as const;
  const lines = nested.map(({ name, state }) => `- concierge ${name}: ${states[state]}`);
  return `${OUTCOME_UNKNOWN}\nIt had called these tools by then:\n${lines.join('\n')}`;
}
