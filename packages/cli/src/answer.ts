import type { Writable } from 'node:stream';

/** What a command has found out: the same facts for programs and for people. */
export interface Answer {
  /** Printed as one line of JSON with `--json`. */
  readonly json: unknown;
  /** Printed otherwise. */
  readonly text: string;
  /** The command has done its work, and what it found is bad. */
  readonly failed?: boolean;
}

export function printAnswer(answer: Answer, { json, out }: { readonly json: boolean; readonly out: Writable }): void {
  out.write(`${json ? JSON.stringify(answer.json) : answer.text}\n`);
}

/** Columns as wide as they need to be; numbers are the caller's to format. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** `name  value` lines. */
export function facts(pairs: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(pairs).map((name) => name.length));
  return Object.entries(pairs)
    .map(([name, value]) => `${name.padEnd(width)}  ${value}`)
    .join('\n');
}
