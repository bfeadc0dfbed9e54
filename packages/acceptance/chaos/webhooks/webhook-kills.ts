import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ServiceProcess } from '@concierge/testing';
import { z } from 'zod';
import type { Client } from '../../contract/client.ts';
import { TestChannels, whatsAppText } from '../../e2e/channels/test-channels.ts';
import { numbered, numbersIn } from '../../e2e/channels/numbered.ts';
import type { Finding } from '../audit/finding.ts';
import { SeededRandom } from '../load/seeded-random.ts';
import { auditAnswers } from './audit-answers.ts';

export interface WebhookKills {
  readonly seed: number;
  readonly messages: number;
  readonly people: number;
  /** kill -9 of a gateway or a worker, started again at once. */
  readonly kills: number;
  /** Redis is emptied so often. */
  readonly flushes: number;
  readonly tree?: string | undefined;
}

export interface WebhookKillsReport {
  readonly messages: number;
  readonly deliveries: number;
  readonly kills: number;
  /**
   * Parts that were perhaps sent: the worker died during its request to the provider. Shown as unknown, never sent
   * again.
   */
  readonly unknown: number;
  /** Messages without an answer, with two answers, or answered in another order. */
  readonly findings: readonly Finding[];
}

const TENANT = 'webhooks';
const SETTLE_TIMEOUT_MS = 480_000;
const REPEATS_MAX = 20;
/** A provider's minutes are seconds here: long enough for a gateway to come back. */
const RETRY_DELAYS_MS = [100, 300, 1000, ...Array.from({ length: 150 }, () => 2000)];

/**
 * Delivers each message one to twenty times, side by side, while gateways and workers die and Redis is emptied. The
 * sent answers show which messages were answered: each once, in order for each contact.
 */
export async function runWebhookKills({ seed, messages, people, kills, flushes, tree }: WebhookKills): Promise<WebhookKillsReport> {
  const random = new SeededRandom(seed);
  await using fixture = await TestChannels.start({ gateways: 2, workers: 2, tree });
  const owner = await fixture.tenantOn(TENANT, 'whatsapp');
  const persons = Array.from({ length: people }, (_, index) => `49170${String(index).padStart(7, '0')}`);
  const faults = strike(fixture, random.fork(), { kills, flushes });
  const counts = await Promise.all(
    persons.map(async (from) => speak(fixture, random.fork(), { from, messages: Math.round(messages / people) })),
  );
  await faults;
  await settle(fixture);
  const unknown = await unknownAnswers(owner);
  return {
    messages: Math.round(messages / people) * people,
    deliveries: counts.reduce((sum, count) => sum + count, 0),
    kills,
    unknown: unknown.length,
    findings: audit(fixture, persons, { each: Math.round(messages / people), unknown }),
  };
}

/** Delivers one contact's messages, one after the other, each a random number of times. */
async function speak(
  fixture: TestChannels,
  random: SeededRandom,
  { from, messages }: { readonly from: string; readonly messages: number },
): Promise<number> {
  let deliveries = 0;
  fixture.meta.personWrites(from);
  for (let number = 1; number <= messages; number += 1) {
    const payload = whatsAppText({ from, id: `wamid.${from}.${String(number)}`, body: numbered(number) });
    const repeats = random.chance(0.2) ? random.between(2, REPEATS_MAX) : 1;
    const copies = Array.from({ length: repeats }, async () => bring(fixture, payload, random.between(0, 1)));
    const taken = await Promise.all(copies);
    deliveries += taken.length;
    if (!taken.some(Boolean)) throw new Error(`no gateway took message ${String(number)} of ${from}`);
    await wait(random.between(0, 400));
  }
  return deliveries;
}

/** Delivers to the two gateways alternately, as a load balancer would. @returns whether one took it */
async function bring(fixture: TestChannels, payload: object, first: number): Promise<boolean> {
  for (const [attempt, delayMs] of [0, ...RETRY_DELAYS_MS].entries()) {
    await wait(delayMs);
    const url = fixture.webhookUrl('whatsapp', TENANT, (first + attempt) % 2);
    if ((await fixture.meta.deliverTo(url, payload)) === 200) return true;
  }
  return false;
}

async function strike(
  { system }: TestChannels,
  random: SeededRandom,
  { kills, flushes }: { readonly kills: number; readonly flushes: number },
): Promise<void> {
  const targets: readonly ServiceProcess[] = [...system.gateways, ...system.workers];
  const flushAt = new Set(Array.from({ length: flushes }, (_, index) => Math.round(((index + 1) * kills) / (flushes + 1))));
  for (let kill = 1; kill <= kills; kill += 1) {
    await wait(random.between(500, 1500));
    const target = random.pick(targets);
    await target.kill();
    target.start();
    if (flushAt.has(kill)) await system.redis.flush();
  }
}

/** Nothing waits to be answered, and nothing to be sent. */
async function settle({ system }: TestChannels): Promise<void> {
  const scope = await system.scope(TENANT);
  const isAtRest = async (): Promise<boolean> => (await scope.inbox.turnIds()).length === 0 && (await scope.outbox.waiting()).length === 0;
  await eventually(isAtRest, { timeoutMs: SETTLE_TIMEOUT_MS, everyMs: 500 });
  await system.ready();
}

const Deliveries = z.array(z.object({ id: z.string(), to: z.string(), text: z.string() }));

/** Answers that the service reports as perhaps sent. */
async function unknownAnswers(owner: Client): Promise<z.infer<typeof Deliveries>> {
  return Deliveries.parse((await owner.get('/api/deliveries?status=unknown&limit=100')).json());
}

interface Expected {
  readonly each: number;
  readonly unknown: z.infer<typeof Deliveries>;
}

/** Judges by the sent answers and by those that the service reports as unknown. */
function audit({ meta }: TestChannels, persons: readonly string[], { each, unknown }: Expected): Finding[] {
  const acknowledged = Array.from({ length: each }, (_, index) => index + 1);
  return persons.flatMap((person) => {
    const unsure = new Set(unknown.filter(({ to }) => to === person).flatMap(({ text }) => numbersIn(text)));
    return auditAnswers({ person, acknowledged, heard: heardBy(meta, person), unsure });
  });
}

/** Numbers of the messages that a contact was sent an answer to. */
export function heardBy(meta: Pick<TestChannels['meta'], 'sent'>, person: string): number[] {
  const texts = meta.sent.filter(({ to }) => to === person).map(({ text }) => z.object({ body: z.string() }).parse(text).body);
  return texts.flatMap((text) => numbersIn(text));
}
