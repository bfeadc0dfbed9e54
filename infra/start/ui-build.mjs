// The console's pages; their own build decides whether anything has changed.
import { run } from './commands.mjs';
import { complain, say } from './terminal.mjs';

const BUILD_TIMEOUT_MS = 5 * 60_000;
/** Looking whether there is anything to do takes less; whoever waits longer is told why. */
const SILENT_MS = 1000;
const SHOWN_LINES = 15;

/** Builds the pages when needed. A failed build is reported and holds up nothing: the API works without them. */
export async function buildUi(env) {
  const timer = setTimeout(() => say('Building the console (once; again only when its sources change) ...'), SILENT_MS);
  const { ok, stdout, stderr } = await run(process.execPath, ['services/ui/build.mjs'], { timeoutMs: BUILD_TIMEOUT_MS, env });
  clearTimeout(timer);
  if (ok) return;
  const reason = (stderr || stdout).trim().split('\n').slice(-SHOWN_LINES).join('\n');
  complain(`The console could not be built; the API works without it.\n${reason}`);
}
