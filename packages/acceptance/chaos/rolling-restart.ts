import { eventually, type ServiceProcess } from '@concierge/testing';
import type { ChaosRig } from './rig.ts';

/** SIGTERM for one process after the other, each started again and ready before the next one goes. */
export async function rollOver({ target, evidence }: ChaosRig): Promise<void> {
  for (const worker of target.workers) await restart(worker);
  for (const [index, gateway] of target.gateways.entries()) {
    await restart(gateway);
    const url = target.gatewayUrls[index] ?? '';
    await eventually(async () => (await fetch(`${url}/readyz`)).status === 200, { timeoutMs: 30_000, everyMs: 50 });
  }

  async function restart(process: ServiceProcess): Promise<void> {
    const exitCode = await process.terminate();
    evidence.fault({ atMs: Date.now(), kind: 'terminate', target: process.name, exitCode });
    process.start();
  }
}
