import { describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { run } from '../start/commands.mjs';

/** It starts the services and reads what they ran: on a busy machine each part takes minutes. */
const TIMEOUT_MS = 600_000;

describe('npm run reading', () => {
  it(
    'measures one turn, and finds every file of docs/reading.md in it',
    async () => {
      // Idle for a moment only: the list does not depend on what is subtracted, the figures do.
      const { ok, stdout, stderr } = await run(process.execPath, ['infra/reading.mjs', '--files', '--idle', '1'], {
        timeoutMs: TIMEOUT_MS,
        env: { ...process.env, NODE_OPTIONS: '', PWD: root },
      });
      expect([stdout.includes('did not run'), stderr]).toEqual([false, '']);
      expect(ok).toBe(true);
      expect(stdout).toMatch(/^One warm web turn with a tool call runs \d{4} lines in \d+ files of \d+ lines/mu);
      expect(stdout).toMatch(/^\* +\d+ of +\d+ {2}packages\/agent\/src\/loop\/run-agent-loop\.ts$/mu);
    },
    TIMEOUT_MS,
  );
});
