import { DAY_MS, type TurnWarning } from '@concierge/contract';
import { background, type Log } from '@concierge/runtime';
import { turnWarned, type WebhookEvents, type TurnRun } from '@concierge/turn';

/** A warning and its subject (such as a file); one with a subject holds for every turn until the subject is mended. */
export interface ReportedWarning extends TurnWarning {
  readonly subject?: string;
}

export type ReportWarning = (run: Pick<TurnRun, 'scope' | 'turn'>, warning: ReportedWarning) => void;

export interface TurnWarningsOptions {
  readonly webhookEvents: Pick<WebhookEvents, 'emit'>;
  readonly log: Log;
  readonly now?: () => number;
}

/** Warnings that this process remembers to have given today; with more of them some are given twice. */
const REMEMBERED_MAX = 10_000;

/**
 * Notifies the operator (log) and the owner (webhook event) of problems that did not end the turn; of one that holds
 * for every turn, once a day.
 */
export class TurnWarnings {
  readonly #options: TurnWarningsOptions;
  readonly #given = new Set<string>();
  #day = 0;

  constructor(options: TurnWarningsOptions) {
    this.#options = options;
  }

  readonly report: ReportWarning = ({ scope, turn }, { subject, ...warning }) => {
    const { webhookEvents, log, now = Date.now } = this.#options;
    const nowMs = now();
    if (subject !== undefined && !this.#isFirst(`${turn.tenantId}/${warning.code}/${subject}`, Math.floor(nowMs / DAY_MS))) return;
    log.warn({ turnId: turn.turnId, tenantId: turn.tenantId, agent: turn.agent, ...warning }, 'the owner of a turn is warned');
    const event = turnWarned(turn, warning, subject === undefined ? undefined : { name: subject, nowMs });
    background(webhookEvents.emit(scope, event), log);
  };

  #isFirst(name: string, day: number): boolean {
    if (day !== this.#day || this.#given.size >= REMEMBERED_MAX) this.#given.clear();
    this.#day = day;
    if (this.#given.has(name)) return false;
    this.#given.add(name);
    return true;
  }
}
