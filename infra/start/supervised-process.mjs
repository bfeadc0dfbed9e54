// One child process that is kept alive.
//
//   idle → running       start()
//   running → waiting    it exited by itself; it comes back after a pause that doubles
//   waiting → running    the pause is over
//   waiting → failed     it exited too often in a row; the others go on
//   any → stopped        stop()
//   stopped → running    restart(), which stops it first
import { spawn } from 'node:child_process';
import { bold, complain, showLines } from './terminal.mjs';

const MAX_RESTARTS = 5;
const FIRST_PAUSE_MS = 500;
/** One that lived this long was well: its failures are counted from the beginning again. */
const HEALTHY_AFTER_MS = 60_000;
const KEPT_LINES = 12;
const TIDY_AFTER_MS = 1500;

export class SupervisedProcess {
  state = 'idle';
  #options;
  #child;
  #startedAt = 0;
  #failures = 0;
  #timer;
  #lastLines = [];
  #toldReady = false;
  #muted;

  /**
   * `options`: name, command, args, env; `muted` to show nothing before `unmute()` but the last lines of a failure;
   * `firstPauseMs` before it is started again, doubled each time.
   */
  constructor(options) {
    this.#options = options;
    this.#muted = options.muted === true;
  }

  get name() {
    return this.#options.name;
  }

  /** It runs and has reported by IPC that it is ready. */
  get isReady() {
    return this.state === 'running' && this.#toldReady;
  }

  /** It ended more than once in a row: no caller should wait for it. */
  get isFailing() {
    return this.#failures > 1;
  }

  /** Shows its lines from now on; earlier lines are kept for the report of a failure. */
  unmute() {
    this.#muted = false;
  }

  start() {
    const { command, args, env } = this.#options;
    this.state = 'running';
    this.#startedAt = Date.now();
    this.#lastLines = [];
    this.#toldReady = false;
    // A group of its own: Ctrl-C in the terminal reaches only the start script, which stops everything in order.
    const child = spawn(command, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) hearLines(stream, (lines) => this.#hear(lines));
    child.on('message', (message) => {
      if (message?.ready === true) this.#becameReady(child);
    });
    child.on('error', (error) => this.#hear([error.message]));
    child.on('close', (code, signal) => this.#ended(signal ?? `code ${code}`));
  }

  /** SIGTERM, then SIGKILL when it is still there after `graceMs`. Resolves with whether it ended by itself. */
  async stop(graceMs) {
    clearTimeout(this.#timer);
    const wasRunning = this.state === 'running';
    this.#muted = this.#options.muted === true;
    this.state = 'stopped';
    if (!wasRunning) return true;
    const ended = new Promise((resolve) => this.#child.once('close', () => resolve(true)));
    this.#signal('SIGTERM');
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => resolve(false), graceMs);
    });
    const clean = await Promise.race([ended, late]);
    clearTimeout(timer);
    if (!clean) {
      complain(`${this.name} did not stop within ${Math.round(graceMs / 1000)} s and was ended.`);
      this.kill();
      await ended;
    }
    return clean;
  }

  /** Ends it as `stop` does and starts it again, with its failures forgotten. One that was not started yet stays so. */
  async restart(graceMs) {
    if (this.state === 'idle') return;
    await this.stop(graceMs);
    this.#failures = 0;
    this.start();
  }

  kill() {
    this.#signal('SIGKILL');
  }

  #becameReady(child) {
    this.#toldReady = true;
    // Not at once: the others are still starting on the same cores.
    setTimeout(() => child.connected && child.send({ tidyUp: true }), TIDY_AFTER_MS).unref();
  }

  #signal(signal) {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    try {
      process.kill(signal === 'SIGKILL' ? -pid : pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }

  #hear(lines) {
    this.#lastLines = [...this.#lastLines, ...lines.slice(-KEPT_LINES)].slice(-KEPT_LINES);
    if (!this.#muted) showLines(this.name, lines);
  }

  #ended(how) {
    if (this.state === 'stopped') return;
    if (Date.now() - this.#startedAt > HEALTHY_AFTER_MS) this.#failures = 0;
    this.#failures += 1;
    if (this.#muted) showLines(this.name, this.#lastLines);
    if (this.#failures > MAX_RESTARTS) {
      this.state = 'failed';
      complain(
        `${bold(this.name)} ended (${how}) ${this.#failures} times in a row and is left alone; the others go on. Its last lines are above.`,
      );
      return;
    }
    const pauseMs = (this.#options.firstPauseMs ?? FIRST_PAUSE_MS) * 2 ** (this.#failures - 1);
    this.state = 'waiting';
    complain(`${bold(this.name)} ended (${how}); starting it again in ${pauseMs / 1000} s (${this.#failures} of ${MAX_RESTARTS}).`);
    this.#timer = setTimeout(() => this.start(), pauseMs);
  }
}

/** Whole lines, all that came at once together: a service under load writes hundreds in one piece. */
function hearLines(stream, hear) {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text) => {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop();
    if (lines.length > 0) hear(lines);
  });
  stream.on('end', () => {
    if (rest !== '') hear([rest]);
  });
}
