import { memo, type ReactNode } from 'react';
import type { ToolPart } from '@concierge/client';
import { CopyButton } from '../parts/button.tsx';
import { AlertIcon, CheckIcon, ChevronIcon, SpinnerIcon } from '../parts/icons.tsx';
import type { Words } from '../words/en.ts';
import { useFormats, useWords } from '../words/words.tsx';
import { NameForModel, ToolName } from '../parts/tool-name.tsx';

const states = {
  running: { icon: <SpinnerIcon className="size-3.5 text-primary" />, label: 'running' },
  ok: { icon: <CheckIcon className="size-3.5 text-ok" />, label: 'ok' },
  error: { icon: <AlertIcon className="size-3.5 text-danger" />, label: 'failed' },
} as const;

/** The call in a few words: its first argument that is one; while it runs and writes output, its last words. */
function summarise({ input, status, progress }: ToolPart): string {
  const lastLine = status === 'running' ? progress.trimEnd().split('\n').at(-1) : undefined;
  if (lastLine !== undefined && lastLine !== '') return lastLine.slice(-160);
  const first = Object.values(input).find((value) => typeof value === 'string' || typeof value === 'number');
  return first === undefined ? '' : String(first).replaceAll(/\s+/gu, ' ').slice(0, 160);
}

function describeResult({ status, output, progress }: ToolPart, words: Words['chat']['tool']): string {
  if (output !== null) return output === '' ? words.nothing : output;
  if (progress !== '') return progress;
  return status === 'running' ? '…' : words.noResult;
}

/** One tool call: a line that opens. */
export const ToolCard = memo(function ToolCard({ part }: { readonly part: ToolPart }): ReactNode {
  const words = useWords().chat.tool;
  const formats = useFormats();
  const { icon, label: state } = states[part.status];
  const label = words[state];
  return (
    <details className="group/tool my-2 overflow-hidden rounded-lg border bg-card text-sm" data-tool={part.name} data-status={part.status}>
      <summary className="flex min-h-9 list-none items-center gap-2 px-2.5 py-1.5 hover:bg-muted [&::-webkit-details-marker]:hidden">
        <ChevronIcon className="size-3.5 shrink-0 text-muted-foreground transition-transform group-open/tool:rotate-90" />
        <span className="shrink-0" title={label}>
          {icon}
          <span className="sr-only">{label}</span>
        </span>
        <ToolName name={part.name} className="shrink-0 text-[0.8125rem] font-medium" />
        <span className="min-w-0 flex-1 truncate text-[0.8125rem] text-muted-foreground">{summarise(part)}</span>
        {part.durationMs !== null && (
          <span className="shrink-0 text-xs text-muted-foreground tabular-nums">{formats.duration(part.durationMs)}</span>
        )}
      </summary>
      <div className="space-y-2 border-t px-2.5 py-2">
        <NameForModel name={part.name} />
        <ToolText title={words.input} text={JSON.stringify(part.input, null, 2)} />
        <ToolText
          title={part.status === 'error' ? words.error : words.output}
          text={describeResult(part, words)}
          tone={part.status === 'error' ? 'text-danger' : ''}
        />
        {part.truncated && <p className="text-xs text-muted-foreground">{words.cut}</p>}
      </div>
    </details>
  );
});

function ToolText({ title, text, tone = '' }: { readonly title: string; readonly text: string; readonly tone?: string }): ReactNode {
  const words = useWords().chat.tool;
  return (
    <section>
      <div className="flex items-center justify-between">
        <h3 className="text-xs font-medium text-muted-foreground">{title}</h3>
        <CopyButton text={text} label={words.copy(title)} />
      </div>
      <pre
        tabIndex={0}
        aria-label={title}
        className={`max-h-72 overflow-auto rounded-md bg-muted px-2.5 py-2 font-mono text-xs leading-relaxed whitespace-pre-wrap [overflow-wrap:anywhere] ${tone}`}
      >
        {text}
      </pre>
    </section>
  );
}
