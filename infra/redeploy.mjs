#!/usr/bin/env node
// `npm run redeploy [-- [--all] [service...]]`: replaces the containers of docker-compose.yml whose image or settings
// have changed, one at a time, without a failed request. `--all`: also those that have not changed. Needs Node 20,
// Docker Compose, and nothing that is installed by npm; COMPOSE_FILE in .env names the override files.
import { redeploy, rolledServices } from './deploy/redeploy.mjs';
import { complain, say } from './start/terminal.mjs';
import { mindUsage } from './usage.mjs';

mindUsage(import.meta.url);

const args = process.argv.slice(2);
const named = args.filter((arg) => arg !== '--all');
const unknown = named.filter((name) => !rolledServices.includes(name));
if (unknown.length > 0) {
  complain(`redeploy: there is no ${unknown.join(', ')}; services are ${rolledServices.join(', ')}`);
  process.exit(1);
}
try {
  await redeploy({ services: named.length === 0 ? rolledServices : named, all: args.includes('--all'), onStep: say });
} catch (error) {
  complain(`redeploy: ${error.message}`);
  process.exitCode = 1;
}
// What waits for the lock of a redeploy that runs leaves its timer.
process.exit();
