// The console's pages and the web widget; their own builds decide whether anything has changed.
import { run } from './commands.mjs';
import { complain, say } from './terminal.mjs';

const BUILD_TIMEOUT_MS = 5 * 60_000;
/** A check whether there is anything to do takes less; a longer wait prints the reason. */
const SILENT_MS = 1000;
const SHOWN_LINES = 15;

/** Builds one of them when needed. A failed build is reported and holds up nothing: the API works without it. */
async function build(name, script, env) {
  const timer = setTimeout(() => say(`Building the ${name} (once; again only when its sources change) ...`), SILENT_MS);
  const { ok, stdout, stderr } = await run(process.execPath, [script], { timeoutMs: BUILD_TIMEOUT_MS, env });
  clearTimeout(timer);
  if (ok) return;
  const reason = (stderr || stdout).trim().split('\n').slice(-SHOWN_LINES).join('\n');
  complain(`The ${name} could not be built; the API works without it.\n${reason}`);
}

/** The console's pages. */
export async function buildUi(env) {
  await build('console', 'services/ui/build.mjs', env);
}

/** The script that the gateway serves at /widget.js. */
export async function buildWidget(env) {
  await build('web widget', 'packages/widget/build.mjs', env);
}
