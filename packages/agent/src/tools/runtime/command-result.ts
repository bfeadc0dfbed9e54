import { cutText, limits } from '@concierge/contract';
import type { CommandResult } from '@concierge/sandbox';
import { ToolError } from '../tool.ts';

/** Room for the sentence above the output. */
const HEADING_BYTES = 1024;

/**
 * A command's end for the model: how it ended and how long it took, then what it printed.
 * @throws ToolError when it was killed: the sentence explains why, and the message holds what it had printed by then
 */
export function describeResult(result: CommandResult): string {
  const text = `${writeHeading(result)}${budgetNoteOn(result)}\n\n${shown(result)}`.trimEnd();
  switch (result.end.kind) {
    case 'exited':
    case 'signalled':
      return text;
    case 'timed_out':
    case 'stopped':
    case 'out_of_memory':
    case 'out_of_space':
      throw new ToolError(text);
  }
}

/** The end in a few words, for lists. */
export function describeEnd({ end, durationMs }: CommandResult): string {
  const seconds = formatSeconds(durationMs);
  switch (end.kind) {
    case 'exited':
      return `exit code ${String(end.exitCode)} after ${seconds}`;
    case 'signalled':
      return `ended by ${end.signal} after ${seconds}`;
    case 'timed_out':
      return `killed after ${seconds}: its time was over`;
    case 'stopped':
      return `killed after ${seconds}`;
    case 'out_of_memory':
      return `killed after ${seconds}: it needed too much memory`;
    case 'out_of_space':
      return `killed after ${seconds}: the workspace was full`;
  }
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

function writeHeading(result: CommandResult): string {
  const seconds = formatSeconds(result.durationMs);
  const { end } = result;
  switch (end.kind) {
    case 'exited':
      return `Exit code ${String(end.exitCode)} after ${seconds}.${noteOn(result)}`;
    case 'signalled':
      return `Ended by ${end.signal} after ${seconds}.${noteOn(result)}`;
    case 'timed_out':
      return `Killed after ${seconds}, with everything it had started: its time was over. Give it a larger timeoutMs (at most ${String(limits.toolTimeoutMaxMs)}), run it with background: true, or do less at once.${noteOn(result)}`;
    case 'stopped':
      return `Killed after ${seconds}, with everything it had started: it was stopped from outside.${noteOn(result)}`;
    case 'out_of_memory':
      return `Killed after ${seconds}, with everything it had started: it needed more memory than there is here. Work on smaller pieces.${noteOn(result)}`;
    case 'out_of_space':
      return `Killed after ${seconds}, with everything it had started: the workspace holds more than it may. Remove files; until then commands can write nothing.${noteOn(result)}`;
  }
}

function budgetNoteOn({ overBudget }: CommandResult): string {
  if (overBudget === undefined) return '';
  const { usedBytes, maxBytes } = overBudget;
  const held = Number.isFinite(usedBytes) ? `${String(usedBytes)} bytes` : 'folders nested too deeply to be measured';
  return ` The workspace holds ${held}, of ${String(maxBytes)} bytes that it may (uploads are counted): this command could remove files and write nothing. Remove what is not needed, or tell the user.`;
}

function noteOn({ output, outputBytes }: CommandResult): string {
  if (outputBytes === 0) return ' It printed nothing.';
  if (outputBytes <= limits.toolOutputModelMaxBytes - HEADING_BYTES && outputBytes <= Buffer.byteLength(output)) return '';
  return ` It printed ${String(outputBytes)} bytes, of which the beginning and the end are below; send long output to a file and look at parts of it.`;
}

function shown({ output, outputBytes }: CommandResult): string {
  return keepEnds(output, limits.toolOutputModelMaxBytes - HEADING_BYTES, outputBytes);
}

/**
 * `text` in at most `maxBytes` of UTF-8 with its beginning and its end; a line between them states how much is missing.
 * @param wholeBytes the size of the output of which `text` is already the beginning and the end
 */
export function keepEnds(text: string, maxBytes: number, wholeBytes = 0): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const note = (left: number): string => `\n[… ${String(left)} bytes left out here …]\n`;
  const whole = Math.max(wholeBytes, bytes.length);
  const room = Math.max(0, maxBytes - Buffer.byteLength(note(whole)));
  const head = cutText(text, Math.ceil(room / 2)).text;
  const tail = lastBytes(bytes, Math.floor(room / 2));
  return head + note(whole - Buffer.byteLength(head) - Buffer.byteLength(tail)) + tail;
}

/** The last `maxBytes`, fewer where that would begin inside a code point. */
function lastBytes(bytes: Buffer, maxBytes: number): string {
  let start = bytes.length - maxBytes;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.toString('utf8', start);
}
