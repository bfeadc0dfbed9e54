import { join } from 'node:path';
import type { AcceptedTurn } from '@concierge/contract';
import { namesIn, parseJson, readLog, SharedRun } from '@concierge/files';
import { parseTurn, type HasEnded, type LoggedTurns } from '@concierge/tenant';
import { z } from 'zod';

/** What a write-ahead log contains, one JSON text for each record. */
const Entry = z.discriminatedUnion('kind', [
  /** A turn was accepted. `turn`: the content of its inbox file; `identity`: its tenant's, see `Incarnation`. */
  z.object({ kind: z.literal('accepted'), identity: z.string(), turn: z.string() }),
  /** These turns have ended, have their inbox files, or were refused. */
  z.object({ kind: z.literal('settled'), turnIds: z.array(z.string()) }),
]);

type AcceptedEntry = Extract<z.infer<typeof Entry>, { kind: 'accepted' }>;

/** A turn that a log has and no later record settles. */
export interface UnsettledTurn {
  readonly logId: string;
  readonly turn: AcceptedTurn;
  /** What its inbox file contains. */
  readonly content: string;
  readonly tenantId: string;
  readonly identity: string;
}

export function renderAccepted(identity: string, turn: string): string {
  return JSON.stringify({ kind: 'accepted', identity, turn });
}

export function renderSettled(turnIds: readonly string[]): string {
  return JSON.stringify({ kind: 'settled', turnIds });
}

/** Ids of the logs that are in the folder, of living processes and of dead ones. */
export async function listLogs(folder: string): Promise<string[]> {
  return (await namesIn(folder)).filter((name) => /^[0-9a-f-]{36}$/u.test(name));
}

/** Of one log, in the order of acceptance. */
export async function readUnsettled(folder: string, logId: string): Promise<UnsettledTurn[]> {
  const turns = new Map<string, UnsettledTurn>();
  for (const text of await readLog(join(folder, logId))) {
    const parsed = parseJson(Entry, text);
    // A record of a later version, which this one would not know how to recover, is left to that.
    if (parsed.status === 'broken') continue;
    const entry = parsed.value;
    if (entry.kind === 'settled') for (const turnId of entry.turnIds) turns.delete(turnId);
    else addTurn(turns, logId, entry);
  }
  return [...turns.values()];
}

function addTurn(turns: Map<string, UnsettledTurn>, logId: string, { identity, turn: content }: AcceptedEntry): void {
  const turn = parseTurn(content);
  if (turn === undefined || turns.has(turn.turnId)) return;
  turns.set(turn.turnId, { logId, turn, content, tenantId: turn.tenantId, identity });
}

/** The logs of all processes as the disk has them: turns that ended a moment ago may still be among them. */
export class LogsOnDisk implements LoggedTurns {
  readonly #unsettled: SharedRun<UnsettledTurn[]>;

  /** `folder`: tenants/.wal */
  constructor(folder: string) {
    this.#unsettled = new SharedRun(async () => {
      const logs = await Promise.all((await listLogs(folder)).map(async (logId) => readUnsettled(folder, logId)));
      return logs.flat();
    });
  }

  /** `except`: the log in which it is not looked for. */
  async find({ tenantId, turnId }: Pick<AcceptedTurn, 'tenantId' | 'turnId'>, except?: string): Promise<UnsettledTurn | undefined> {
    return (await this.findTurns(tenantId)).find(({ turn, logId }) => turn.turnId === turnId && logId !== except);
  }

  /** Of all tenants. */
  async turns(): Promise<readonly UnsettledTurn[]> {
    return this.#unsettled.run();
  }

  async findTurns(tenantId: string): Promise<UnsettledTurn[]> {
    return (await this.turns()).filter((one) => one.tenantId === tenantId);
  }

  async read(tenantId: string, turnId: string, hasEnded: HasEnded): Promise<string | undefined> {
    const found = await this.find({ tenantId, turnId });
    return found === undefined || (await hasEnded(found.turn)) ? undefined : found.content;
  }

  async turnIds(tenantId: string, hasEnded: HasEnded): Promise<readonly string[]> {
    const ids = new Set<string>();
    for (const { turn } of await this.findTurns(tenantId)) if (!(await hasEnded(turn))) ids.add(turn.turnId);
    return [...ids];
  }
}
