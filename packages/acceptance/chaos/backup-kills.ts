import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { countUnanswered, eventually, System, temporaryDirectory, testSecrets } from '@concierge/testing';
import { reportOn, type AuditReport } from './audit/auditor.ts';
import { readAuditInput } from './audit/audit-input.ts';
import type { Evidence } from './audit/evidence.ts';
import type { InvariantId } from './audit/finding.ts';
import type { FaultPlan } from './faults.ts';
import type { LoadSize } from './load/load-plan.ts';
import { ChaosRig, startSystem } from './rig.ts';
import type { Place, Verdict } from './scenarios.ts';

const main = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const env = { SANDBOX: 'off' };
/** Those of the system under test. */
const secrets = { KEY_SECRET: testSecrets.keySecret, SECRETS_KEY: testSecrets.secretsKey };
const REST_TIMEOUT_MS = 240_000;
/** One question in so many has been acknowledged when the backup begins. */
const COPIED_PART = 3;
/**
 * What a copy of a running deployment promises of turns that were acknowledged before it began. Not I5: a turn that ran
 * while it was copied may run a tool once more where the copy is started.
 */
const held: ReadonlySet<InvariantId> = new Set(['I1', 'I2', 'I3', 'I4', 'I7']);

export interface BackupKills extends Place {
  readonly load: LoadSize;
  readonly faults: FaultPlan;
  readonly deadlineMs: number;
}

async function runCommand(dataDir: string, ...args: string[]): Promise<void> {
  const script = ['--conditions=@concierge/source', '--no-warnings', main, ...args, '--json'];
  await promisify(execFile)(process.execPath, script, { env: { PATH: '/usr/bin:/bin', DATA_DIR: dataDir, ...secrets } });
}

/**
 * A backup in the middle of kills and load. The verdict is given twice: on the deployment itself, and on what the copy
 * is when it was restored elsewhere and came to rest.
 */
export async function runBackupKills({ seed, tree, load, faults, deadlineMs }: BackupKills, verdict: Verdict): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const [copy, restored] = [stack.use(await temporaryDirectory()).path, stack.use(await temporaryDirectory()).path];
  const file = join(copy, 'all.tar.gz');
  let model = '';
  const rig = stack.use(
    await ChaosRig.start({
      seed,
      load,
      start: async (modelUrl) => {
        model = modelUrl;
        return await startSystem(modelUrl, { tree, env });
      },
    }),
  );
  let begunAtMs = 0;
  const backUp = async (): Promise<void> => {
    await wait(faults.overMs / 2);
    // A machine that has too much to do takes questions late, and a copy of none of them would prove nothing.
    const isEnough = async (): Promise<boolean> => (await rig.evidence.readAcknowledged()).length >= load.turns / COPIED_PART;
    await eventually(isEnough, { timeoutMs: deadlineMs, everyMs: 100 });
    begunAtMs = Date.now();
    await runCommand(rig.target.dataDir, 'backup', file);
  };
  const meanwhile = async (): Promise<void> => {
    await Promise.all([rig.strike(faults), backUp()]);
  };
  await rig.run({ meanwhile, wholeLoad: true, deadlineMs });
  await verdict(await rig.finish(), rig);
  await runCommand(restored, 'restore', file);
  await mkdir(join(restored, 'logs'));
  const second = stack.use(await System.start({ modelUrl: model, dataDir: restored, env }));
  await eventually(async () => (await countUnanswered(join(restored, 'tenants'))) === 0, { timeoutMs: REST_TIMEOUT_MS });
  for (const service of second.services) await service.terminate();
  await verdict(await auditCopy(rig.evidence, { restored, logsFolder: second.logsFolder, begunAtMs }), rig);
}

interface Copied {
  readonly restored: string;
  readonly logsFolder: string;
  readonly begunAtMs: number;
}

/** What was acknowledged before the backup began has to be in the copy; what came meanwhile may be, and is whole. */
async function auditCopy(evidence: Evidence, { restored, logsFolder, begunAtMs }: Copied): Promise<AuditReport> {
  const input = await readAuditInput({ evidence, tenantsFolder: join(restored, 'tenants'), logsFolder });
  const there = new Set(input.sessions.flatMap(({ turns }) => turns.map(({ id }) => id)));
  const acknowledged = input.acknowledged.filter(({ turnId, atMs }) => atMs < begunAtMs || there.has(turnId));
  const markers = new Set(acknowledged.map(({ marker }) => marker));
  const asked = input.asked.filter(({ marker }) => markers.has(marker));
  const nothingElse = { transcripts: [], ledger: [], faults: [], refused: [], flooded: [] };
  const report = reportOn({ ...input, ...nothingElse, acknowledged, asked });
  // No client reads from the copy.
  const findings = report.findings.filter(({ invariant, kind }) => held.has(invariant) && kind !== 'unanswered');
  return { ...report, findings };
}
