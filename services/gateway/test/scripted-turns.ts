import type { AcceptedTurn, Session, TurnEvent, TurnRecord } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnEnd, TurnHandlers, TurnRun } from '@concierge/turn';

/** What a turn of a test does instead of asking a model: writes the message back, or does what the test scripts. */
export type Script = (run: TurnRun) => Promise<void>;

type Done = Extract<TurnEvent, { type: 'done' }>['data'];

/** Echoes the message, a word at a time. */
export const sayItBack: Script = async ({ turn, writer }) => {
  for (const word of turn.text.split(/(?<= )/u)) {
    writer.emit({ type: 'text_delta', data: { delta: word } });
    await writer.flush();
  }
};

function toRecord(turn: AcceptedTurn, outcome: Pick<TurnRecord, 'status' | 'finishReason' | 'error'>): TurnRecord {
  const now = new Date().toISOString();
  return {
    id: turn.turnId,
    origin: turn.origin,
    acceptedAt: new Date(turn.acceptedAtMs).toISOString(),
    startedAt: now,
    firstTextAt: now,
    endedAt: now,
    attempts: 1,
    usage: { inputTokens: 3, outputTokens: 5 },
    models: [{ model: 'test/scripted', calls: 1, inputTokens: 3, outputTokens: 5, cachedInputTokens: 0, costUsd: null }],
    steps: [],
    requestHash: turn.requestHash,
    keyId: turn.keyId,
    ...outcome,
  };
}

function emptySession(turn: AcceptedTurn): Session {
  const now = new Date().toISOString();
  const { sessionId: id, agent, channel, sender } = turn;
  return {
    version: 1,
    id,
    agent,
    channel,
    sender,
    revision: 0,
    createdAt: now,
    updatedAt: now,
    title: turn.text.slice(0, 60),
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
  };
}

async function publish(scope: TenantScope, turn: AcceptedTurn, record: TurnRecord): Promise<void> {
  const session = (await scope.sessions.load(turn.sessionId)) ?? emptySession(turn);
  const at = record.endedAt;
  const said = [
    {
      id: `${turn.turnId}.u`,
      turnId: turn.turnId,
      at,
      role: 'user' as const,
      text: turn.text,
      sent: turn.text,
      ...(turn.attachments.length > 0 ? { attachments: turn.attachments } : {}),
    },
    { id: `${turn.turnId}.a`, turnId: turn.turnId, at, role: 'assistant' as const, text: turn.text },
  ];
  const next = {
    ...session,
    revision: session.revision + 1,
    updatedAt: at,
    messageCount: session.messageCount + 2,
    messages: [...session.messages, ...said],
    turns: [...session.turns, record],
  };
  await scope.sessions.publish(next);
  await scope.index.putSession(next);
}

/** Runs turns by script, and stores them as a worker does: published first, announced afterwards. */
export function scriptedTurns(script: () => Script): TurnHandlers {
  return {
    runTurn: async (run): Promise<TurnEnd> => {
      const failure = await script()(run).then(
        () => null,
        () => ({ code: 'provider_error' as const, message: 'The model provider failed.' }),
      );
      if (failure !== null && !run.signal.aborted) {
        await publish(run.scope, run.turn, toRecord(run.turn, { status: 'failed', finishReason: null, error: failure }));
        return { event: { type: 'error', data: { ...failure, retryable: true, turnId: run.turn.turnId } } };
      }
      const finishReason: Done['finishReason'] = run.signal.aborted ? 'cancelled' : 'stop';
      await publish(
        run.scope,
        run.turn,
        toRecord(run.turn, { status: finishReason === 'stop' ? 'done' : 'cancelled', finishReason, error: null }),
      );
      return { event: { type: 'done', data: { inputTokens: 3, outputTokens: 5, finishReason } } };
    },
    failTurn: async (run, code): Promise<TurnEnd> => {
      const failure = { code, message: 'failed' };
      await publish(run.scope, run.turn, toRecord(run.turn, { status: 'failed', finishReason: null, error: failure }));
      return { event: { type: 'error', data: { ...failure, retryable: false, turnId: run.turn.turnId } } };
    },
  };
}
