import { AppError, limits } from '@concierge/contract';
import type { RateLimits } from '@concierge/turn';
import type { VisitorCaller } from './visitor.ts';

const WINDOW_SECONDS = 60;

/**
 * Limits visitors' requests, on top of the tenant's limits. The visitor's limit comes first: one who floods does not
 * use up the quota of all visitors together.
 */
export class WidgetLimits {
  readonly #rateLimits: RateLimits;

  constructor(rateLimits: RateLimits) {
    this.#rateLimits = rateLimits;
  }

  /** @throws AppError `rate_limited`, `overloaded` */
  async takeMessage({ scope, sessionId }: VisitorCaller): Promise<void> {
    await this.#take(`${scope.tenantId}:widget:${sessionId}`, limits.widgetMessagesPerVisitorMinute);
    await this.#take(`${scope.tenantId}:widget`, limits.widgetMessagesPerMinute);
  }

  /** @throws AppError `rate_limited`, `overloaded` */
  async takeRead({ scope, sessionId }: VisitorCaller): Promise<void> {
    await this.#take(`${scope.tenantId}:widget-reads:${sessionId}`, limits.widgetReadsPerVisitorMinute);
  }

  /** No tenant id has a colon: these windows are never a tenant's window of requests. */
  async #take(window: string, limit: number): Promise<void> {
    const state = await this.#rateLimits.take(window, { limit, windowSeconds: WINDOW_SECONDS }).catch((error: unknown) => {
      throw new AppError('overloaded', 'The request cannot be counted right now.', { cause: error, retryAfterSeconds: 1 });
    });
    if (state.allowed) return;
    throw new AppError('rate_limited', `At most ${String(limit)} of these requests are allowed in a minute.`, {
      retryAfterSeconds: state.resetSeconds,
    });
  }
}
