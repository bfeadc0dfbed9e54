// What is printed once everything runs.
import { bold, complain, dim, say } from './terminal.mjs';

const SAMPLE = 'Hello! Which files do you have? Please read IDENTITY.md and introduce yourself.';

/** A line that can be pasted into any shell. */
export function curlLine(port, key, message = SAMPLE) {
  const body = JSON.stringify({ message });
  return `curl -N http://localhost:${port}/api/admin -H 'X-API-Key: ${key}' -H 'Content-Type: application/json' -d '${body}'`;
}

/** `facts`: ports, seconds, backends (name → description), keys, late (names of services that are not ready). */
export function printBanner({ ports, seconds, backends, keys, late }) {
  const row = (name, text) => say(`  ${name.padEnd(9)} ${text}`);
  say('');
  say(bold(late.length === 0 ? `Concierge is ready (${seconds} s).` : `Concierge runs, but not all of it (${seconds} s).`));
  if (late.length > 0) complain(`  not ready: ${late.join(', ')} (see the lines above)`);
  say('');
  row('API', `http://localhost:${ports.gateway}  ${dim(`documentation: http://localhost:${ports.gateway}/docs`)}`);
  row('Console', `http://localhost:${ports.ui}`);
  for (const [name, text] of Object.entries(backends)) row(name, text);
  say('');
  row('Demo', 'tenant "demo"');
  row('admin key', keys.admin);
  row('cs key', keys.cs);
  say('');
  say('Ask it something:');
  say('');
  say(bold(curlLine(ports.gateway, keys.admin)));
  say('');
  say(dim('Ctrl-C stops everything in order.'));
  say('');
}
