// Types checked beside what runs: errors are reported and stop nothing.
import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { complain, say } from '../start/terminal.mjs';

const LOW_PRIORITY = 10;
const SHOWN_LINES = 40;

/** Prints what a check found, and that it finds nothing any more. */
function printTypes({ output, hasErrors, hadErrors }) {
  if (!hasErrors && hadErrors) say('Types: no errors any more.');
  if (!hasErrors) return;
  const lines = output.split('\n');
  const rest = lines.length > SHOWN_LINES ? [`... and ${lines.length - SHOWN_LINES} lines more`] : [];
  complain(['Types:', ...lines.slice(0, SHOWN_LINES), ...rest].join('\n'));
}

export class TypeCheck {
  #root;
  #report;
  #child;
  #hadErrors = false;

  /** `report({ output, hasErrors, hadErrors })` is called after each check that was not overtaken by another. */
  constructor(root, report = printTypes) {
    this.#root = root;
    this.#report = report;
  }

  /** Checks what is there now; a check that is under way is of an older state and ends. */
  run() {
    this.kill();
    const child = spawn('tsc', ['-b', '--pretty', 'false'], { cwd: this.#root, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('spawn', () => setPriority(child.pid, LOW_PRIORITY));
    child.on('error', (error) => complain(`The types cannot be checked: ${error.message}`));
    child.on('close', (code) => {
      if (this.#child === child) this.#closed(code !== 0, output.trim());
    });
  }

  async stop() {
    this.kill();
  }

  kill() {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  #closed(hasErrors, output) {
    this.#report({ output, hasErrors, hadErrors: this.#hadErrors });
    this.#hadErrors = hasErrors;
  }
}
