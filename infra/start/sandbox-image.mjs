// Building the sandbox image from `npm start`: in the foreground while the user waits, or behind everything else.
import { spawn } from 'node:child_process';
import { createWriteStream, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { complain, say } from './terminal.mjs';

const script = fileURLToPath(new URL('../sandbox/build.mjs', import.meta.url));

/** Builds the image with its progress on the terminal; resolves when the build has ended or failed. */
export async function buildSandboxImage() {
  say('Building the sandbox image (once, about a minute) ...');
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'inherit', 'inherit'] });
  await once(child, 'close');
}

/**
 * A part of the running system: builds the image with its progress in a file, and reports how it ended. Stopped, it
 * leaves nothing behind.
 */
export class BackgroundBuild {
  #child;
  #logFile;
  #stopped = false;

  constructor(dataFolder) {
    this.#logFile = join(dataFolder, 'sandbox-image.log');
  }

  start() {
    const log = createWriteStream(this.#logFile, { mode: 0o600 });
    log.on('error', (error) => complain(`${this.#logFile} cannot be written: ${error.message}`));
    // A group of its own, as the services: Ctrl-C in the terminal reaches only the start script.
    this.#child = spawn(process.execPath, [script], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.pipe(log, { end: false });
    this.#child.on('close', (code) => log.end(() => this.#ended(code)));
  }

  async stop() {
    this.#stopped = true;
    if (this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return true;
    this.#child.kill('SIGTERM');
    await once(this.#child, 'close');
    return true;
  }

  kill() {
    this.#stopped = true;
    this.#child?.kill('SIGKILL');
  }

  #ended(code) {
    if (this.#stopped) return;
    const last = readFileSync(this.#logFile, 'utf8')
      .trim()
      .split('\n')
      .at(-1)
      .replace(/^sandbox image: +(?:[\d.]+ s +)?/u, '');
    if (code === 0) say(`The sandbox image is built: the next start runs bash and exec in Docker. (${last})`);
    else complain(`The sandbox image could not be built; what the banner names stays in use. ${last} (${this.#logFile})`);
  }
}
