import { access, constants, statfs } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Finding } from '@concierge/contract';
import { failed, listLooks, ok, warning, withoutSandbox, type Deployed, type Found } from '@concierge/core/examine-deployment';
import { hasUsableKey, loadProviders } from '@concierge/model';
import type { SandboxSettings } from '@concierge/runtime';
import { Command } from 'commander';
import { table, type CommandContext, failureLine } from '../answer.ts';
import type { Deployment } from '../deployment.ts';

const NODE_MAJOR = 24;
const LOW_DISK_BYTES = 1024 ** 3;

const PROGRAM_TIMEOUT_MS = 5000;

type Check = (deployment: Deployment) => Promise<Found>;

async function checkNode(): Promise<Found> {
  const { node } = process.versions;
  return Number(node.split('.', 1)[0]) >= NODE_MAJOR ? ok(node) : failed(`${node}; Node ${String(NODE_MAJOR)} or newer is needed`);
}

async function checkDataFolder({ config }: Deployment): Promise<Found> {
  await access(config.dataDir, constants.W_OK | constants.R_OK);
  const { bavail, bsize } = await statfs(config.dataDir);
  const free = `${(Number(bavail * bsize) / 1024 ** 3).toFixed(1)} GiB free`;
  return bavail * bsize < LOW_DISK_BYTES ? warning(`${config.dataDir}, only ${free}`) : ok(`${config.dataDir}, ${free}`);
}

async function checkOwnProviders({ config }: Deployment): Promise<Found> {
  const providers = await loadProviders(config.providersFile, config.environment);
  if (providers === undefined) return warning(`there is no ${config.providersFile}`);
  const found = config.mayUseDemoModel ? warning : failed;
  const answers = config.mayUseDemoModel ? 'the demo model answers' : 'and in production nothing answers without DEMO_MODEL=1';
  if (!hasUsableKey(providers)) return found(`no usable key, ${answers} (${providers.unusable.join('; ')})`);
  return ok([`default ${providers.default}`, ...providers.unusable].join('; '));
}

/** What this command finds where no worker can be asked. */
const fallbacks: Readonly<Record<string, Check>> = {
  providers: checkOwnProviders,
  sandbox: async ({ config }) => checkOwnSandbox(config.sandbox),
};

function listChecks(deployment: Deployment): [string, () => Promise<Found>][] {
  const { config, log } = deployment;
  const deployed: Deployed = {
    redis: async () => deployment.redis(),
    index: async () => deployment.index(),
    hasPostgres: config.databaseUrl !== undefined,
    log,
  };
  const looks = listLooks(deployed).map(([name, look]): [string, () => Promise<Found>] => [
    name,
    async () => {
      const found = await look();
      if (!('unknownBecause' in found)) return found;
      const own = await fallbacks[name]?.(deployment);
      if (own === undefined) return warning(found.unknownBecause);
      return { status: own.status, detail: `${found.unknownBecause}; as this command is configured: ${own.detail}` };
    },
  ]);
  return [['node', checkNode], ['data', async () => checkDataFolder(deployment)], ...looks];
}

async function examine({ deployment, answer }: CommandContext): Promise<void> {
  const findings: Pick<Finding, 'name' | 'status' | 'detail'>[] = [];
  for (const [name, check] of listChecks(deployment)) {
    const { status, detail } = await check().catch((error: unknown) => failed(failureLine(error)));
    findings.push({ name, status, detail });
  }
  const healthy = findings.every(({ status }) => status !== 'failed');
  const rows = findings.map(({ name, status, detail }) => [name, status, detail]);
  answer({ json: { ok: healthy, checks: findings }, text: table(['CHECK', 'STATE', 'DETAIL'], rows), failed: !healthy });
}

/** `concierge doctor` */
export function doctorCommand(context: CommandContext): Command {
  return new Command('doctor').action(async () => await examine(context));
}

const runProgram = promisify(execFile);

/** What it printed; undefined when it failed or is not there. */
async function readOutput(command: string, args: readonly string[]): Promise<string | undefined> {
  return await runProgram(command, args, { timeout: PROGRAM_TIMEOUT_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

/** Undefined when Docker can be the sandbox of this machine, else what is missing. */
async function whyNotDocker({ image, runtime }: SandboxSettings): Promise<string | undefined> {
  const runtimes = await readOutput('docker', ['info', '--format', '{{json .Runtimes}}']);
  // Without an engine, the client prints only its own data.
  if (runtimes === undefined || !runtimes.startsWith('{')) return 'no Docker engine answers';
  if ((await readOutput('docker', ['image', 'inspect', '--format', '{{.Id}}', image])) === undefined) {
    return `the Docker engine has no image ${image} (node infra/sandbox/build.mjs makes it)`;
  }
  if (runtime !== undefined && !runtimes.includes(JSON.stringify(runtime))) return `the Docker engine has no runtime ${runtime}`;
  return undefined;
}

async function whyNotBubblewrap(): Promise<string | undefined> {
  if ((await readOutput('bwrap', ['--version'])) === undefined) return 'bubblewrap is not installed';
  const namespaces = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--die-with-parent', '--cap-drop', 'ALL'];
  const asUser = process.getuid?.() === 0 ? [] : ['--unshare-user', '--disable-userns'];
  const places = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'];
  const made = await readOutput('bwrap', [...namespaces, ...asUser, ...places, 'true']);
  return made === undefined ? 'bubblewrap cannot make a sandbox here (are user namespaces switched off?)' : undefined;
}

/** What a worker with this command's machine and configuration would choose. */
async function checkOwnSandbox(choice: SandboxSettings): Promise<Found> {
  if (choice.kind === 'off') return warning(`switched off: ${withoutSandbox}`);
  const missing: string[] = [];
  if (choice.kind !== 'bubblewrap') {
    const reason = await whyNotDocker(choice);
    if (reason === undefined)
      return ok(`Docker, image ${choice.image}${choice.runtime === undefined ? '' : `, runtime ${choice.runtime}`}`);
    missing.push(reason);
  }
  if (choice.kind !== 'docker') {
    const reason = await whyNotBubblewrap();
    if (reason === undefined) return ok(['bubblewrap', ...missing].join('; '));
    missing.push(reason);
  }
  return warning(`${missing.join('; ')}: ${withoutSandbox}`);
}
