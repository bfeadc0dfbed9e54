// Types checked beside what runs: errors are printed and stop nothing.
import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { complain, say } from '../start/terminal.mjs';

const LOW_PRIORITY = 10;
const SHOWN_LINES = 40;

export class TypeCheck {
  #root;
  #child;
  #wasBad = false;

  constructor(root) {
    this.#root = root;
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
      if (this.#child === child) this.#report(code, output.trim());
    });
  }

  async stop() {
    this.kill();
  }

  kill() {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  #report(code, output) {
    if (code === 0) {
      if (this.#wasBad) say('Types: no errors any more.');
    } else {
      const lines = output.split('\n');
      complain(`Types:\n${lines.slice(0, SHOWN_LINES).join('\n')}`);
      if (lines.length > SHOWN_LINES) complain(`... and ${lines.length - SHOWN_LINES} lines more`);
    }
    this.#wasBad = code !== 0;
  }
}
