// `npm start` without npm, for tests.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '@concierge/testing';
import { root } from '../bootstrap.mjs';

export const START_TIMEOUT_MS = 200_000;

/** A running system over a data folder of its own. */
export class Started {
  output = '';
  child;
  #ports;

  constructor(env, args) {
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(?:NODE_OPTIONS|REDIS_URL|DATABASE_URL|OPENAI_API_KEY|npm_)/u.test(name)),
    );
    this.child = spawn(process.execPath, args, {
      cwd: root,
      // No .env of the checkout.
      env: { ...inherited, NODE_ENV: '', ENV_FILE: '/dev/null', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#ports = [env.GATEWAY_PORT, env.UI_PORT];
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (chunk) => (this.output += chunk));
    this.ended = once(this.child, 'exit');
  }

  async ready() {
    await eventually(
      () => {
        if (this.child.exitCode !== null) throw new Error(this.output);
        return this.output.includes('Ctrl-C stops everything');
      },
      { timeoutMs: START_TIMEOUT_MS },
    );
    // After a minute it is said that all runs also where some of it is not ready yet.
    const [gateway, ui] = this.#ports;
    const addresses = [`http://127.0.0.1:${gateway}/readyz`, `http://127.0.0.1:${ui}/livez`];
    for (const address of addresses) await eventually(async () => (await fetch(address)).ok, { timeoutMs: START_TIMEOUT_MS });
  }

  /** What stands behind a name in the banner. */
  shown(name) {
    // bounded-expression: a name that a test gives
    return new RegExp(String.raw`^ {2}${name} +(\S+)`, 'mu').exec(this.output)?.[1];
  }

  async interrupt() {
    this.child.kill('SIGINT');
    const [code] = await this.ended;
    return code;
  }
}
