import { createHash } from 'node:crypto';

/** What chat-completion providers take as a function's name: `^[a-zA-Z0-9_-]{1,64}$`. */
const NAME_MAX_CHARACTERS = 64;
const HASH_CHARACTERS = 8;

/**
 * `mcp__<server>__<tool>`; a tool whose own name does not fit gets a shorter one that no other tool of the server has.
 */
export function toolNameOf(server: string, tool: string): string {
  const plain = tool.replaceAll(/[^a-zA-Z0-9_-]/gu, '_');
  const whole = `mcp__${server}__${plain}`;
  if (plain === tool && whole.length <= NAME_MAX_CHARACTERS) return whole;
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, HASH_CHARACTERS);
  return `${whole.slice(0, NAME_MAX_CHARACTERS - HASH_CHARACTERS - 1)}_${hash}`;
}
