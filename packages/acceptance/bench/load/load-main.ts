// A load driver, a process of its own: takes {"load": …} as a message, {"open": …} for turns that come at their times,
// {"hold": …} to open streams and keep them, or {"webhooks": …}.
import { z } from 'zod';
import { LoadRun } from './load-run.ts';
import type { LoadReport } from './load-spec.ts';
import { OpenLoad } from './open-load.ts';
import { openStreams } from './open-streams.ts';
import { WebhookLoad } from './webhook-load.ts';

const Spec = z.object({
  ports: z.array(z.number()),
  kind: z.enum(['model', 'chat']),
  apiKeys: z.array(z.string()),
  concurrency: z.number(),
  rampMs: z.number(),
  warmUpMs: z.number(),
  warmUpTurns: z.number(),
  measureMs: z.number(),
  senders: z.object({ prefix: z.string(), perSlot: z.number(), turnsEach: z.number() }).optional(),
});
const Webhooks = z.object({
  port: z.number(),
  paths: z.array(z.string()),
  phoneNumberId: z.string(),
  appSecret: z.string(),
  connections: z.number(),
  peopleEach: z.number(),
  messagesEach: z.number(),
  measureMs: z.number(),
  total: z.number().optional(),
  perSecond: z.number().optional(),
  newcomers: z.boolean(),
  warmUpMs: z.number(),
});
const Open = z.object({
  ports: z.array(z.number()),
  apiKeys: z.array(z.string()),
  turns: z.array(z.object({ atMs: z.number(), tenant: z.number(), sender: z.string(), modelMs: z.number() })),
  warmUpMs: z.number(),
  measureMs: z.number(),
});
const Order = z.union([
  z.object({ load: Spec }),
  z.object({ open: Open }),
  z.object({ hold: z.object({ port: z.number(), apiKeys: z.array(z.string()), count: z.number() }) }),
  z.object({ webhooks: Webhooks }),
]);

function report(message: LoadReport): void {
  process.send?.(message);
}

async function obey(order: z.infer<typeof Order>): Promise<void> {
  if ('hold' in order) await openStreams(order.hold);
  else if ('open' in order) {
    await new OpenLoad(order.open).run({
      measuring: () => report({ kind: 'measuring' }),
      measured: (result) => report({ kind: 'ended', result }),
    });
  } else if ('webhooks' in order) {
    const { webhooks } = order;
    report({
      kind: 'answered',
      result: await new WebhookLoad({ ...webhooks, total: webhooks.total, perSecond: webhooks.perSecond }).run(),
    });
  } else {
    await new LoadRun({ ...order.load, senders: order.load.senders }).run({
      measuring: () => report({ kind: 'measuring' }),
      measured: (result) => report({ kind: 'measured', result }),
    });
  }
  report({ kind: 'idle' });
}

process.on('message', (message) => {
  obey(Order.parse(message)).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  });
});
process.send?.({ port: 0 });
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
