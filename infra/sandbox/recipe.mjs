// What the sandbox image is made from, and the label with the recipe that made an image.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { run } from '../start/commands.mjs';

export const IMAGE = 'concierge-sandbox';
export const BASE_IMAGE = 'debian:bookworm-slim';
const LABEL = 'concierge.recipe';
const ingredients = ['Dockerfile', 'packages.txt', 'finish-root.sh', 'make-root.sh'];

export const recipeFolder = fileURLToPath(new URL('.', import.meta.url));

/** Changes with everything that changes the image. */
export function recipeHash() {
  const hash = createHash('sha256');
  for (const name of ingredients) hash.update(name).update(readFileSync(new URL(name, import.meta.url)));
  return hash.digest('hex').slice(0, 16);
}

/**
 * Environment, user and the like, as the last stage of the Dockerfile has them: the other way of building sets the
 * same.
 */
export function imageSettings() {
  const dockerfile = readFileSync(new URL('Dockerfile', import.meta.url), 'utf8');
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  const settings = lastStage.split('\n').filter((line) => /^(?:LABEL|ENV|USER|WORKDIR|CMD) /u.test(line));
  return settings.map((line) => line.replace('${RECIPE}', recipeHash()));
}

/** `current`: made by this recipe; `stale`: by another one; `missing`: no engine has it. */
export async function stateOfImage(image) {
  const { ok, stdout } = await run('docker', ['image', 'inspect', '--format', `{{index .Config.Labels "${LABEL}"}}`, image]);
  if (!ok) return 'missing';
  return stdout.trim() === recipeHash() ? 'current' : 'stale';
}
