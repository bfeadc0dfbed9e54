import { finished } from 'node:stream/promises';
import { AppError, routes } from '@concierge/contract';
import type { WakeupQueue } from '@concierge/turn';
import { Router, type Express, type Request, type RequestHandler, type Response } from 'express';

type Queues = WakeupQueue['queues'];

/** Strict but for styles, which the page's script makes as it runs. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const foreignLink = /<link href="https:[^<>]+>/gu;

/** Shows operators the wake-up queues of turns and of outgoing messages, read-only. */
export class QueueDashboard {
  readonly #queues: Queues;
  #board: Promise<RequestHandler> | undefined;

  constructor(queues: Queues) {
    this.#queues = queues;
  }

  /** Answers with the page or what it asks for; resolves when the answer is out. @throws AppError not_found */
  async send(request: Request, response: Response): Promise<void> {
    this.#board ??= openBoard(this.#queues);
    const board = await this.#board;
    response.setHeader('Content-Security-Policy', policy);
    await new Promise<void>((resolve, reject) => {
      // A client that leaves early is no failure.
      finished(response).then(resolve, () => resolve());
      void board(request, response, (error?: unknown) => {
        reject(error ?? new AppError('not_found', 'There is no such page.'));
      });
    });
  }
}

/** Loaded when it is first asked for: most gateways never are, and start and idle without it. */
async function openBoard(queues: Queues): Promise<RequestHandler> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/express'),
  ]);
  const serverAdapter = new ExpressAdapter().setBasePath(routes.queues.path);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Concierge wake-ups (internals)' } },
  });
  const board: Express = serverAdapter.getRouter();
  board.disable('x-powered-by');
  // The page asks a foreign host for web fonts, which the policy would refuse, each time with a complaint.
  const render = board.render.bind(board);
  board.render = (name: string, values?: object, done?: (error: Error, html: string) => void) =>
    render(name, values, (error, html) => done?.(error, error === null ? html.replaceAll(foreignLink, '') : html));
  return Router().use(routes.queues.path, board);
}
