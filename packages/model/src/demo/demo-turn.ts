import { withoutSpans } from '@concierge/contract';
import { lastAsked, textOfMessage, type CompletionMessage, type CompletionRequest } from './completion-request.ts';

export interface DemoResult {
  readonly tool: string;
  readonly output: string;
}

/** What the demo model understands of a request. */
export interface DemoTurn {
  /** The user's own words: without the context block before them and the attachments after. */
  readonly words: string;
  /** Names of the attached files. */
  readonly attachments: readonly string[];
  readonly offered: ReadonlySet<string>;
  /** Results of the tools called since the last user message. */
  readonly results: readonly DemoResult[];
  readonly isFirst: boolean;
  readonly prompt: DemoPrompt;
}

/** What it finds in the system prompt. */
export interface DemoPrompt {
  /** The agent's name by its IDENTITY, if one can be made out. */
  readonly name: string | undefined;
  readonly sections: readonly string[];
  readonly skills: readonly { readonly name: string; readonly description: string }[];
}

export function readTurn(request: CompletionRequest): DemoTurn {
  const { messages } = request;
  const lastUser = lastAsked(messages);
  const userMessage = messages[lastUser];
  const sent = userMessage === undefined ? '' : textOfMessage(userMessage);
  return {
    words: withoutSpans(sent.replace(/^<context>[^]*?<\/context>\s*/u, ''), '<attachment ', '</attachment>').trim(),
    attachments: [...sent.matchAll(/<attachment id="[^"<>]*" name="([^"<>]*)"/gu)].map(([, name = '']) => name),
    offered: new Set(request.tools?.map((tool) => tool.function.name)),
    results: resultsOf(messages.slice(lastUser + 1)),
    isFirst: messages.filter((message) => message.role === 'user').length === 1,
    prompt: readPrompt(
      messages
        .filter((message) => message.role === 'system')
        .map(textOfMessage)
        .join('\n'),
    ),
  };
}

function resultsOf(messages: readonly CompletionMessage[]): DemoResult[] {
  const names = new Map(
    messages.flatMap((message) => message.tool_calls ?? []).map((call): [string, string] => [call.id, call.function.name]),
  );
  return messages
    .filter((message) => message.role === 'tool')
    .map((message) => ({ tool: names.get(message.tool_call_id ?? '') ?? 'a tool', output: textOfMessage(message) }));
}

function readPrompt(system: string): DemoPrompt {
  const parts = system.split(/^# /mu).slice(1);
  const section = (title: string): string => parts.find((part) => part.startsWith(`${title}\n`)) ?? '';
  const name =
    /^[^\w\r\n\u2028\u2029]*name[^\w\r\n\u2028\u2029:]*:[^\p{L}\d\r\n\u2028\u2029]*([\p{L}\d][\p{L}\d ._-]{0,40})/imu.exec(
      section('Identity'),
    ) ?? /\b[Yy]ou are (?:called )?\**([^\s*,.:;!]{2,30})/u.exec(section('Identity'));
  const skills = [...section('Skills').matchAll(/^- ([a-z0-9-]+): (.+)$/gmu)];
  return {
    name: name?.[1]?.trim(),
    sections: parts.map((part) => part.slice(0, part.indexOf('\n')).trim()).filter((title) => title !== ''),
    skills: skills.map(([, skill = '', description = '']) => ({ name: skill, description })),
  };
}
