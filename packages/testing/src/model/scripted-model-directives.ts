import {
  callTools,
  cut,
  finish,
  hang,
  malformedChunk,
  say,
  status,
  usage,
  wait,
  type Script,
  type ScriptedAction,
} from './scripted-model-script.ts';

/**
 * Scripts inside the user's message, so that a test can drive the model through any number of other processes:
 *
 * | directive | meaning |
 * |---|---|
 * | `[[say:hello\|chunks=20\|delay=20]]` | answers it, in so many deltas, so many ms apart |
 * | `[[tools:read {"path":"a"}; read {"path":"b"}]]` | calls these tools, in parallel |
 * | `[[hang]]` | never answers |
 * | `[[finish:length]]` | ends with this reason; joins the reply before it |
 * | `[[usage:100,20]]` | reports prompt and completion tokens; joins the reply before it |
 * | `[[wait:500]]` | ms before the reply that follows |
 * | `[[fail:500 x2]]` | the next reply fails so often first: a status, `cut` (after some text), `malformed` or `hang` |
 *
 * Each of `say`, `tools` and `hang` is the reply to one model call of the turn, in order; `+[[tools:…]]` joins the one
 * before it. `]]` cannot appear inside.
 */
export interface Directives {
  readonly replies: readonly DirectedReply[];
}

export interface DirectedReply {
  readonly script: Script;
  /** Played instead for the first `count` requests. */
  readonly failures: readonly { readonly script: Script; readonly count: number }[];
}

interface Draft {
  script: ScriptedAction[];
  failures: { script: Script; count: number }[];
}

const directivePattern = /(\+?)\[\[(\w+)(?::((?:[^\]]|\](?!\]))*))?\]\]/gu;

/** A `;` before the next tool's name; those inside arguments stay. */
const callBoundary = /;\s*(?=\w+\s*(?:\{|;|$))/u;

/** Undefined when the text holds no directive. Throws `SyntaxError` on one that cannot be read. */
export function readDirectives(text: string): Directives | undefined {
  if (!text.includes('[[')) return undefined;
  const reader = new DirectiveReader();
  for (const [, plus, name = '', argument = ''] of text.matchAll(directivePattern)) reader.add({ name, argument, joins: plus === '+' });
  const replies = reader.finish();
  return replies.length === 0 ? undefined : { replies };
}

interface Directive {
  readonly name: string;
  readonly argument: string;
  /** Written with a `+`: part of the reply before it. */
  readonly joins: boolean;
}

class DirectiveReader {
  readonly #replies: Draft[] = [];
  /** The directives so far for the reply that follows. */
  #ahead: Draft = { script: [], failures: [] };

  add({ name, argument, joins }: Directive): void {
    const last = this.#replies.at(-1);
    if (name === 'fail') this.#ahead.failures.push(readFailure(argument));
    else if (name === 'wait') this.#ahead.script.push(wait(Number(argument)));
    else if (last !== undefined && (joins || name === 'finish' || name === 'usage')) last.script.push(readAction(name, argument));
    else this.#open(readAction(name, argument));
  }

  finish(): Draft[] {
    if (this.#ahead.failures.length > 0 || this.#ahead.script.length > 0) this.#open(say('ok'));
    return this.#replies;
  }

  #open(action: ScriptedAction): void {
    this.#ahead.script.push(action);
    this.#replies.push(this.#ahead);
    this.#ahead = { script: [], failures: [] };
  }
}

function readAction(name: string, argument: string): ScriptedAction {
  switch (name) {
    case 'say':
      return readSay(argument);
    case 'tools':
      return callTools(argument.split(callBoundary).map(readCall));
    case 'hang':
      return hang();
    case 'finish':
      return finish(argument);
    case 'usage': {
      const [promptTokens = 0, completionTokens = 0] = argument.split(',').map(Number);
      return usage({ promptTokens, completionTokens });
    }
    default:
      throw new SyntaxError(`no such directive: ${name}`);
  }
}

function readSay(argument: string): ScriptedAction {
  const [text = '', ...options] = argument.split('|');
  const given = new Map(options.map((option): [string, number] => [option.split('=')[0] ?? '', Number(option.split('=')[1])]));
  return say(text, { chunks: given.get('chunks') ?? 1, delayMs: given.get('delay') ?? 0 });
}

function readCall(text: string): { name: string; args: string } {
  const [, name, args] = /^\s*(\S+)\s*([^]*)$/u.exec(text) ?? [];
  if (name === undefined) throw new SyntaxError(`no tool call: ${text}`);
  return { name, args: args === undefined || args.trim() === '' ? '{}' : args.trim() };
}

function readFailure(argument: string): { script: Script; count: number } {
  const [what = '', times] = argument.trim().split(/\s+/u);
  return { script: failureScript(what), count: times === undefined ? 1 : Number(times.slice(1)) };
}

function failureScript(what: string): Script {
  if (what === 'cut') return [say('this will be cut ', { chunks: 3 }), cut()];
  if (what === 'malformed') return [malformedChunk()];
  if (what === 'hang') return [hang()];
  const code = Number(what);
  if (!Number.isInteger(code)) throw new SyntaxError(`no such failure: ${what}`);
  return [status(code)];
}
