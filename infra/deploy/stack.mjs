// The stack of docker-compose.yml as a test runs it: stand-in images, two containers of each service, a scripted model.
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../bootstrap.mjs';
import { probePort, run, until } from '../start/commands.mjs';
import { ensureBaseImages } from './base-images.mjs';
import { compose, inspect, listContainers, must } from './compose.mjs';
import { ensurePlugins } from './tools.mjs';

const BUILD_TIMEOUT_MS = 40 * 60_000;
const HEALTHY_TIMEOUT_MS = 10 * 60_000;
const OWNER = 1000;
const services = ['redis', 'postgres', 'gateway', 'worker', 'cron', 'ui', 'balancer'];

/** Its calls are counted: none is made anew because its container stood still for a while. */
const SILENT_MS = 10 * 60_000;
const patient = { headersMs: SILENT_MS, firstTokenMs: SILENT_MS, silenceMs: SILENT_MS };

const providers = {
  default: 'scripted/model',
  fallbacks: [],
  providers: {
    scripted: {
      baseUrl: 'http://model:9000/v1',
      apiKeyEnv: 'OPENAI_API_KEY',
      models: { model: { contextWindow: 128_000, maxOutputTokens: 4096, price: { input: 0, output: 0 }, timeouts: patient } },
    },
  },
};

export class Stack {
  services = services;
  #files = ['docker-compose.yml', 'infra/deploy/compose.test.yml'];
  #folder = mkdtempSync(join(process.env.TMPDIR ?? '/var/tmp', 'concierge-deploy-'));
  #ports = {};

  /** `sandbox`: agents' commands run in containers of this machine's engine. */
  constructor({ sandbox = false } = {}) {
    if (!sandbox) return;
    this.services = [...services, 'engine'];
    this.#files.splice(1, 0, 'infra/compose.sandbox.yml');
  }

  get url() {
    return `http://127.0.0.1:${this.#ports.GATEWAY_PORT}`;
  }

  get operatorsUrl() {
    return `http://127.0.0.1:${this.#ports.OPERATORS_PORT}`;
  }

  get consoleUrl() {
    return `http://127.0.0.1:${this.#ports.UI_PORT}`;
  }

  /** Builds the images, makes secrets and folders, starts everything; `onStep` gets each step. */
  async start(onStep) {
    await ensurePlugins(onStep);
    const images = await ensureBaseImages(onStep);
    for (const name of ['GATEWAY_PORT', 'UI_PORT', 'OPERATORS_PORT']) this.#ports[name] = await probePort(0, '127.0.0.1');
    Object.assign(process.env, images, this.#environment());
    this.#makeFolders();
    await must(join(root, 'infra/make-secrets.sh'), [join(this.#folder, 'secrets')]);
    this.writeSecret('openai_api_key', 'key-of-the-test');
    onStep('building the images');
    await compose(['--profile', 'cli', 'build', '--quiet'], { timeoutMs: BUILD_TIMEOUT_MS });
    onStep('starting');
    await compose(['up', '--detach', '--no-build', 'model', ...this.services], { timeoutMs: HEALTHY_TIMEOUT_MS });
    await this.becomeHealthy();
    onStep('healthy');
  }

  #environment() {
    return {
      COMPOSE_FILE: this.#files.map((file) => join(root, file)).join(':'),
      COMPOSE_PROJECT_NAME: `concierge-test-${process.pid}`,
      CONCIERGE_IMAGE_PREFIX: 'concierge-test/',
      SECRETS_DIR: join(this.#folder, 'secrets'),
      HOST_DATA_DIR: join(this.#folder, 'data'),
      PROVIDERS_FILE: join(this.#folder, 'providers.json'),
      TEST_FOLDER: join(this.#folder, 'calls'),
      GATEWAY_REPLICAS: '2',
      WORKER_REPLICAS: '2',
      CRON_REPLICAS: '2',
      UI_REPLICAS: '2',
      // All streams of a test are one tenant's, who has half of the places, also of the one worker that is left.
      WORKER_CONCURRENCY: '96',
      // A machine that builds images and runs all of this is slow: what is checked is who is asked, not how soon.
      BALANCER_CHECK_TIMEOUT: '60s',
      ...this.#ports,
    };
  }

  #makeFolders() {
    mkdirSync(join(this.#folder, 'data'), { mode: 0o700 });
    chownSync(join(this.#folder, 'data'), OWNER, OWNER);
    mkdirSync(join(this.#folder, 'calls'));
    writeFileSync(join(this.#folder, 'providers.json'), JSON.stringify(providers));
    // Entered by users of containers; what is secret in it has folders of its own.
    chmodSync(this.#folder, 0o755);
  }

  writeSecret(name, text) {
    const file = join(this.#folder, 'secrets', name);
    chmodSync(file, 0o600);
    writeFileSync(file, `${text}\n`);
    chmodSync(file, 0o444);
  }

  readSecret(name) {
    return readFileSync(join(this.#folder, 'secrets', name), 'utf8').trim();
  }

  dataPath(...parts) {
    return join(this.#folder, 'data', ...parts);
  }

  /** All containers of all services. */
  async containers() {
    const lists = await Promise.all(this.services.map(async (service) => listContainers(service)));
    return lists.flat();
  }

  async becomeHealthy() {
    const areHealthy = async () => {
      const all = await this.containers();
      return all.length > 0 && all.every(({ State }) => State.Health?.Status === 'healthy');
    };
    if (await until(areHealthy, { timeoutMs: HEALTHY_TIMEOUT_MS, everyMs: 1000 })) return;
    const states = (await this.containers()).map(({ Name, State }) => `${Name} ${State.Status} ${State.Health?.Status}`);
    const { stdout } = await run('docker', ['compose', 'logs', '--tail', '20'], { timeoutMs: 60_000 });
    throw new Error(`not healthy:\n${states.join('\n')}\n${stdout}`);
  }

  /** The command line, in its own container. */
  async concierge(...args) {
    return compose(['run', '--rm', '-T', 'cli', ...args]);
  }

  /** Model calls that began, by what the user asked. */
  modelCalls(marker) {
    const file = join(this.#folder, 'calls', 'calls.jsonl');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    return lines.filter((line) => line !== '' && JSON.parse(line).event === 'start' && line.includes(marker)).length;
  }

  /** Ends one container as a crash of its machine would; Docker starts it again only when told. */
  async kill(container) {
    await must('docker', ['kill', '--signal', 'KILL', container.Id]);
  }

  async startAgain(...containers) {
    for (const { Id } of containers) await must('docker', ['start', Id]);
    await this.becomeHealthy();
  }

  async isRunning({ Id }) {
    const [found] = await inspect([Id]);
    return found.State.Running;
  }

  /** With `infra/compose.tls.yml`, whose ports replace the others, and a certificate for this machine. */
  async serveHttps() {
    const [httpsPort, httpPort] = [await probePort(0, '127.0.0.1'), await probePort(0, '127.0.0.1')];
    const [certificate, key] = [join(this.#folder, 'certificate.pem'), join(this.#folder, 'key.pem')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,DNS:console.localhost'];
    await must('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', ...subject, '-keyout', key, '-out', certificate]);
    const chain = readFileSync(certificate, 'utf8');
    writeFileSync(join(this.#folder, 'secrets/tls_certificate'), chain + readFileSync(key, 'utf8'), { mode: 0o444 });
    const files = `${process.env.COMPOSE_FILE}:${join(root, 'infra/compose.tls.yml')}`;
    Object.assign(process.env, { COMPOSE_FILE: files, HTTPS_PORT: httpsPort, HTTP_PORT: httpPort, CONSOLE_HOST: 'console.localhost' });
    await compose(['up', '--detach', '--no-build', '--no-deps', 'balancer']);
    await this.becomeHealthy();
    return { httpsPort, httpPort, certificate: chain };
  }

  /** Ends and removes everything, also the volumes. */
  async stop() {
    await run('docker', ['compose', '--profile', '*', 'down', '--volumes', '--timeout', '20'], { timeoutMs: HEALTHY_TIMEOUT_MS });
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
