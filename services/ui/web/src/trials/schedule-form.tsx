import { routes } from '@concierge/contract';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useSearchParams } from 'wouter';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Problem } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { NextRuns, SubmitRow, useCanChange } from '../owner/owner-parts.tsx';
import { useCronWords } from './use-cron-words.ts';

const patterns = { daily: '* * *', weekdays: '* * 1-5', weekly: '* * 1', monthly: '1 * *' } as const;
const choices = ['daily', 'weekdays', 'weekly', 'monthly', 'own'] as const;
type Pattern = (typeof choices)[number];

/** `08:30` and a pattern as a cron expression. */
function toCron(pattern: keyof typeof patterns, time: string): string {
  const [hour = '8', minute = '0'] = time.split(':').map((part) => String(Number(part)));
  return `${minute} ${hour} ${patterns[pattern]}`;
}

/** A new schedule: when, in words while it is chosen, and what the agent is asked then. */
export function ScheduleForm(): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.schedule;
  const formats = useFormats();
  const canChange = useCanChange();
  const zone = useRead(routes.whoAmI).data?.timezone ?? 'UTC';
  const [values, setValues] = useState({ name: '', agent: 'admin', message: '', time: '08:00', cron: '0 8 * * *', timezone: '' });
  const [pattern, setPattern] = useState<Pattern>('weekdays');
  const create = useChange(routes.createSchedule, [routes.listSchedules]);
  const cron = pattern === 'own' ? values.cron : toCron(pattern, values.time);
  const said = useCronWords(cron, formats.locale.slice(0, 2));
  const timezone = values.timezone === '' ? zone : values.timezone;
  const set = (name: keyof typeof values) => (value: string) => setValues({ ...values, [name]: value });
  // The address asks for a new one: its first field has the focus.
  const isAskedFor = useSearchParams()[0].has('new');
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (isAskedFor) form.current?.querySelector('input')?.focus();
  }, [isAskedFor, canChange]);
  const submit = (event: { readonly preventDefault: () => void }): void => {
    event.preventDefault();
    const { name, agent, message } = values;
    const body = { name, agent, message, schedule: { cron, timezone } };
    create.mutate({ body }, { onSuccess: () => setValues({ ...values, name: '', message: '' }) });
  };
  if (!canChange) return null;
  return (
    <details className="mb-4 rounded-xl border bg-card px-4 py-3" open={isAskedFor}>
      <summary className="cursor-pointer text-sm font-semibold">{words.title}</summary>
      <form ref={form} className="mt-3 space-y-3" onSubmit={submit}>
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField label={words.name} value={values.name} onChange={set('name')} required maxLength={100} />
          <AgentField value={values.agent} onChange={set('agent')} label={owner.agent} />
        </div>
        <TextField
          label={words.message}
          help={words.messageHelp}
          value={values.message}
          onChange={set('message')}
          required
          maxLength={4000}
        />
        <div className="grid gap-3 sm:grid-cols-3">
          <SelectField
            label={words.pattern}
            value={pattern}
            options={choices.map((value) => ({ value, label: words.patterns[value] }))}
            onChange={setPattern}
          />
          {pattern === 'own' ? (
            <TextField label={words.cron} value={values.cron} onChange={set('cron')} required spellCheck={false} autoComplete="off" />
          ) : (
            <TextField label={words.time} type="time" value={values.time} onChange={set('time')} required />
          )}
          <TextField label={words.timezone} value={timezone} onChange={set('timezone')} required spellCheck={false} autoComplete="off" />
        </div>
        <p className="text-sm" role="status">
          {words.said(said, timezone)}
        </p>
        <Preview cron={cron} timezone={timezone} />
        <SubmitRow change={create} canChange={canChange} label={words.create} done={words.created} />
      </form>
    </details>
  );
}

/** The times that it would have, or why it would be refused; those before stay while others are asked for. */
function Preview({ cron, timezone }: { readonly cron: string; readonly timezone: string }): ReactNode {
  const times = useRead(routes.listScheduleTimes, { query: { cron, timezone } }, { isEnabled: cron !== '' });
  if (times.isError) return <Problem error={times.error} />;
  return times.data === undefined ? null : <NextRuns runs={times.data.nextRuns} />;
}

function AgentField({
  value,
  onChange,
  label,
}: {
  readonly value: string;
  readonly onChange: (name: string) => void;
  readonly label: string;
}): ReactNode {
  const agents = useRead(routes.listAgents).data ?? [];
  const names = agents.filter(({ problem }) => problem === null).map(({ name }) => name);
  const options = (names.includes(value) ? names : [value, ...names]).map((name) => ({ value: name, label: name }));
  return <SelectField label={label} value={value} options={options} onChange={onChange} />;
}
