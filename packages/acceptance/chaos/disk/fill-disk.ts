import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type System } from '@concierge/testing';
import { probe } from '../redis/cut-connections.ts';
import type { ChaosRig } from '../rig.ts';
import type { SmallDisk } from './small-disk.ts';

/** All the while turns are asked, and most cannot be taken. */
const FULL_MS = 5000;
/** What was taken while a few bytes were left is answered when there are more again. */
const PATIENCE_MS = 1000;
const NOTICED_TIMEOUT_MS = 20_000;
const BACK_TIMEOUT_MS = 60_000;

/** The disk is full for a while, and has room again. */
export async function fillDisk(rig: ChaosRig<System>, disk: SmallDisk): Promise<void> {
  const [keys] = rig.tenants.values();
  const { gatewayUrls } = rig.target;
  const isReady = async (): Promise<boolean> => {
    const answers = await Promise.all(gatewayUrls.map(async (url) => (await fetch(`${url}/readyz`)).ok));
    return answers.every(Boolean);
  };
  const isOver = new AbortController();
  const fullAtMs = Date.now();
  disk.fill();
  const body = (): object => ({ message: 'hello' });
  const asked = { gateways: gatewayUrls, apiKey: keys?.cs ?? '', evidence: rig.evidence, path: '/api/cs', body, timeoutMs: PATIENCE_MS };
  const probing = probe(asked, isOver.signal);
  await wait(FULL_MS);
  const isNoticed = eventually(async () => !(await isReady()), { timeoutMs: NOTICED_TIMEOUT_MS, everyMs: 250 });
  const wasReady = await isNoticed.then(
    () => false,
    () => true,
  );
  isOver.abort();
  const { later: refusals } = await probing;
  rig.evidence.fault({ atMs: fullAtMs, kind: 'disk-full', target: 'disk', refusals, wasReady });
  await disk.free();
  rig.evidence.fault({ atMs: Date.now(), kind: 'disk-free', target: 'disk' });
  await eventually(isReady, { timeoutMs: BACK_TIMEOUT_MS, everyMs: 250 });
}
