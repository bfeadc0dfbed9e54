import { isMcpToolName, isToolName } from '@concierge/contract';
import type { ReactNode } from 'react';
import type { Words } from '../words/en.ts';
import { useWords } from '../words/words.tsx';

/** What a tool does, in words: one of an attached server by its own name, and one that is not known as it is. */
export function describeTool({ tools, attachedTool }: Words['trace'], name: string): string {
  if (isToolName(name)) return tools[name];
  if (!isMcpToolName(name)) return name;
  const [, server = '', ...rest] = name.split('__');
  return rest.length === 0 ? name : attachedTool(rest.join('__').replaceAll('_', ' '), server);
}

interface ToolNameProps {
  /** As the model calls it. */
  readonly name: string;
  readonly className?: string;
}

/** A tool in words, with its name for the model on hover. */
export function ToolName({ name, className = '' }: ToolNameProps): ReactNode {
  const { trace } = useWords();
  return (
    <span className={className} title={`${trace.nameForModel}: ${name}`}>
      {describeTool(trace, name)}
    </span>
  );
}

/** The name itself, for cards that are opened. */
export function NameForModel({ name }: ToolNameProps): ReactNode {
  const { trace } = useWords();
  return (
    <p className="text-xs text-muted-foreground">
      {trace.nameForModel}: <code className="font-mono">{name}</code>
    </p>
  );
}
