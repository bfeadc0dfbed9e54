// `npm run dev`, top to bottom: the system, a restarter beside it, and types checked in the background.
import { parseArgs } from 'node:util';
import { root } from '../bootstrap.mjs';
import { serviceNames } from '../start/services.mjs';
import { startSystem } from '../start/system.mjs';
import { complain, say } from '../start/terminal.mjs';
import { buildUi, buildWidget } from '../start/ui-build.mjs';
import { Restarter } from './restarter.mjs';
import { TypeCheck } from './type-check.mjs';

/** Node's own; each further service that is inspected gets the next one. */
const FIRST_INSPECT_PORT = 9229;
/** A restart cuts a turn off after this; the new worker continues it. */
const GRACE_S = '3';

/** Flags of Node by service, of `SERVICE` or `SERVICE:PORT`. @throws Error that names the services there are */
function inspectFlags(asked) {
  return Object.fromEntries(
    asked.map((text, index) => {
      const [name, port = String(FIRST_INSPECT_PORT + index)] = text.split(':', 2);
      if (!serviceNames.includes(name)) throw new Error(`There is no service ${name}: --inspect takes ${serviceNames.join(', ')}.`);
      return [name, [`--inspect=127.0.0.1:${port}`]];
    }),
  );
}

/** What a service serves beyond its sources; the builds decide whether anything has changed. */
async function buildPages(service, env) {
  if (service === 'ui') await buildUi(env);
  if (service === 'gateway') await buildWidget(env);
}

/** Starts the system and restarts its services on changes until a signal stops it. */
export async function startDevelopment(args) {
  let flags;
  try {
    const { values } = parseArgs({ args, options: { inspect: { type: 'string', multiple: true, default: [] } } });
    flags = inspectFlags(values.inspect);
  } catch (error) {
    complain(error.message);
    process.exit(1);
  }
  process.env.SHUTDOWN_GRACE_S ||= GRACE_S;
  await startSystem({
    flags,
    onReady: ({ services, env, graceMs }) => {
      const types = new TypeCheck(root);
      const restarter = new Restarter({
        root,
        services,
        graceMs,
        prepare: async (service) => buildPages(service, env),
        onChange: () => types.run(),
      });
      for (const [name, [flag]] of Object.entries(flags)) say(`Debugger: ${name} listens on ${flag.slice('--inspect='.length)}.`);
      say('Watching packages/ and services/: what changes is restarted, its types are checked beside.');
      types.run();
      return [types, restarter];
    },
  });
}
