import { randomUUID } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { AppError, errorCodes, onOneLine, type ErrorCode, type Problem } from '@concierge/contract';
import { ConfigError } from '@concierge/runtime';
import type { Deployment } from './deployment.ts';

/** What every command is built with. */
export interface CommandContext {
  readonly deployment: Deployment;
  /** Hands the command's answer to its printer. */
  readonly answer: (answer: Answer) => void;
  readonly streams: Streams;
  /** To draw on again and again; everything else is an answer. Not with `--json`. */
  readonly terminal?: Writable;
}

/** What an archive is read from and written to where `-` stands for its file. */
export interface Streams {
  readonly input: Readable;
  readonly out: Writable;
}

/** What a command has found out: the same facts for programs and for people. */
export interface Answer {
  /** Printed as one line of JSON with `--json`. */
  readonly json: unknown;
  /** Printed otherwise. */
  readonly text: string;
  /** The command has done its work, and what it found is bad. */
  readonly failed?: boolean;
  /** Something else has been written to the output: this goes where errors go. */
  readonly isAside?: boolean;
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

/** One line for a reader. */
export function failureLine(error: unknown): string {
  const fields = error instanceof AppError ? (error.errors ?? []) : [];
  const details = fields.map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
  const line = error instanceof Error ? error.message : String(error);
  return onOneLine([line, ...details].join(' '));
}

function toErrorCode(error: unknown): ErrorCode {
  if (error instanceof AppError) return error.code;
  return error instanceof ConfigError ? 'invalid_request' : 'internal_error';
}

/** The same problem document that the API answers with (RFC 9457). */
export function describeFailure(error: unknown): Problem {
  const code = toErrorCode(error);
  const { status, title } = errorCodes[code];
  const errors = error instanceof AppError && error.errors !== undefined ? { errors: [...error.errors] } : {};
  return { type: `urn:concierge:problem:${code}`, title, status, detail: failureLine(error), code, requestId: randomUUID(), ...errors };
}
