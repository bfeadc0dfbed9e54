import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Session } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { TestChannels, whatsAppText } from '../../e2e/channels/test-channels.ts';
import { numbered, numbersIn } from '../../e2e/channels/numbered.ts';
import type { FaultLine } from '../audit/evidence.ts';
import type { Finding } from '../audit/finding.ts';
import { RedisFaults, type RedisFault } from '../redis/redis-faults.ts';
import { SeededRandom } from '../load/seeded-random.ts';
import { auditAnswers } from './audit-answers.ts';
import { heardBy } from './webhook-kills.ts';

export interface AnswerOrder {
  readonly seed: number;
  /** Redis suffers these, one after the other. */
  readonly faults: readonly RedisFault[];
  readonly people: number;
  readonly tree?: string | undefined;
}

export interface AnswerOrderReport {
  /** Neighbouring messages of one contact with a fault between or beside them. */
  readonly pairs: number;
  readonly findings: readonly Finding[];
  /** Conversations with a finding, by the fault that they went through. */
  readonly disturbed: Readonly<Record<string, number>>;
}

const TENANT = 'answers';
const REST_TIMEOUT_MS = 120_000;
const READY_TIMEOUT_MS = 60_000;
const ASK_AGAIN_MS = 100;
const ACKNOWLEDGE_TIMEOUT_MS = 60_000;
const OK = 200;

/** One contact's part in one fault. */
interface Person {
  readonly fault: RedisFault;
  readonly number: string;
  /** The gateway that takes the contact's messages, and the other one. */
  readonly gateways: readonly [number, number];
  readonly acknowledged: number[];
}

/**
 * Each contact writes before a fault and during it, through one gateway, and once more through another gateway as soon
 * as Redis is back. The message that was acknowledged first is answered first.
 *
 * A frozen Redis carries out what it was sent when it goes on, one connection after the other: there half of the
 * contacts begin with each gateway, and write through both while it is frozen. Whichever connection comes first, it
 * brings second messages before first ones.
 */
export async function runAnswerOrder({ seed, faults, people, tree }: AnswerOrder): Promise<AnswerOrderReport> {
  const random = new SeededRandom(seed);
  await using fixture = await TestChannels.start({ gateways: 2, workers: 2, tree, env: { SANDBOX: 'off' } });
  await fixture.tenantOn(TENANT, 'whatsapp');
  const everybody: Person[] = [];
  for (const [round, fault] of random.shuffled(faults).entries()) {
    const chosen = random.between(0, 1);
    const persons = Array.from({ length: people }, (_, index): Person => {
      const number = `4917${String(round).padStart(3, '0')}${String(index).padStart(5, '0')}`;
      const first = fault === 'frozen' ? index % 2 : chosen;
      return { fault, number, gateways: [first, 1 - first], acknowledged: [] };
    });
    everybody.push(...persons);
    await sufferTogether(fixture, { fault, persons });
    // What stays without an answer is for the auditor to find.
    await eventually(() => persons.every((person) => hasHeardAll(fixture, person)), { timeoutMs: REST_TIMEOUT_MS, everyMs: 250 }).catch(
      () => undefined,
    );
  }
  return await report(fixture, everybody);
}

async function sufferTogether(
  fixture: TestChannels,
  { fault, persons }: { readonly fault: RedisFault; readonly persons: readonly Person[] },
): Promise<void> {
  const throughFirst = async (person: Person): Promise<void> => write(fixture, person, person.gateways[0]);
  const throughOther = async (person: Person): Promise<void> => write(fixture, person, person.gateways[1]);
  const redis = new RedisFaults(fixture.system.redis, { fault: ignoreFault });
  await Promise.all(persons.map(throughFirst));
  await redis.run(fault, async () => {
    await Promise.all(
      persons.map(async (person) => {
        await throughFirst(person);
        if (fault === 'frozen') await throughOther(person);
      }),
    );
  });
  // A gateway that does not see Redis yet would take it as the first one took the one before.
  const isReady = async (url: string): Promise<boolean> => (await fetch(`${url}/readyz`)).ok;
  for (const url of fixture.system.gatewayUrls) await eventually(async () => isReady(url), { timeoutMs: READY_TIMEOUT_MS });
  await Promise.all(persons.map(throughOther));
}

/** What happened is known from the round. */
function ignoreFault(_line: FaultLine): void {
  return undefined;
}

/** The next message, until that gateway has taken it. */
async function write(fixture: TestChannels, person: Person, gateway: number): Promise<void> {
  const next = person.acknowledged.length + 1;
  const payload = whatsAppText({ from: person.number, id: `wamid.${person.number}.${String(next)}`, body: numbered(next) });
  const url = fixture.webhookUrl('whatsapp', TENANT, gateway);
  fixture.meta.personWrites(person.number);
  const isTaken = async (): Promise<boolean> => (await fixture.meta.deliverTo(url, payload)) === OK;
  await eventually(isTaken, { timeoutMs: ACKNOWLEDGE_TIMEOUT_MS, everyMs: ASK_AGAIN_MS });
  person.acknowledged.push(next);
}

function hasHeardAll({ meta }: TestChannels, { number, acknowledged }: Person): boolean {
  const heard = new Set(heardBy(meta, number));
  return acknowledged.every((one) => heard.has(one));
}

async function report(fixture: TestChannels, everybody: readonly Person[]): Promise<AnswerOrderReport> {
  const saved = await savedConversations(join(fixture.system.dataDir, 'tenants', TENANT, 'sessions'));
  const findings = everybody.map(({ number, acknowledged, fault }) => ({
    fault,
    found: auditAnswers({
      person: `${number} (${fault})`,
      acknowledged,
      heard: heardBy(fixture.meta, number),
      unsure: new Set(),
      saved: saved.get(number) ?? [],
    }),
  }));
  const disturbed = Map.groupBy(
    findings.filter(({ found }) => found.length > 0),
    ({ fault }) => fault,
  );
  return {
    pairs: everybody.reduce((sum, { acknowledged }) => sum + acknowledged.length - 1, 0),
    findings: findings.flatMap(({ found }) => found),
    disturbed: Object.fromEntries([...disturbed].map(([fault, some]) => [fault, some.length])),
  };
}

/** Numbers of the messages in each session file, in their order, by the sender. */
async function savedConversations(folder: string): Promise<Map<string, number[]>> {
  const names = (await readdir(folder)).filter((name) => /^[0-9a-f]{32}\.json$/u.test(name));
  const sessions = await Promise.all(names.map(async (name) => Session.parse(JSON.parse(await readFile(join(folder, name), 'utf8')))));
  return new Map(
    sessions.map(({ sender, messages }) => [
      sender ?? '',
      messages.flatMap((message) => (message.role === 'user' ? numbersIn(message.text) : [])),
    ]),
  );
}
