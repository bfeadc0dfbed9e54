import { routes, type ScheduleView } from '@concierge/contract';
import { useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { useSearchParams } from 'wouter';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/confirm-dialog.tsx';
import { AreaField, SelectField, TextField } from '../parts/fields.tsx';
import { Problem } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useExplain, useFormats, useWords } from '../words/words.tsx';
import { NextRuns, SubmitRow, useCanChange } from '../owner/owner-parts.tsx';
import { emptyTask, hasMore, newSchedule, timingChoices, toCron, toPatch, toValues, type ScheduleValues } from './schedule-values.ts';
import { useCronWords } from './use-cron-words.ts';

interface FieldsProps {
  readonly values: ScheduleValues;
  readonly onChange: (values: ScheduleValues) => void;
}

/** A new schedule: when, in words while it is chosen, and what the agent is asked then. */
export function ScheduleForm(): ReactNode {
  const words = useWords().tools.schedule;
  const canChange = useCanChange();
  const whoAmI = useRead(routes.whoAmI);
  const zone = whoAmI.data?.timezone ?? 'UTC';
  const [values, setValues] = useState(newSchedule);
  const create = useChange(routes.createSchedule, [routes.listSchedules]);
  const zoned = { ...values, timezone: values.timezone === '' ? zone : values.timezone };
  // The zone that is shown has not been chosen: that of the account may not be known yet.
  const change = (next: ScheduleValues): void =>
    setValues({ ...next, timezone: next.timezone === zoned.timezone ? values.timezone : next.timezone });
  // The address asks for a new one: its first field has the focus.
  const isAskedFor = useSearchParams()[0].has('new');
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (isAskedFor) form.current?.querySelector('input')?.focus();
  }, [isAskedFor, canChange]);
  const submit = (event: { readonly preventDefault: () => void }): void => {
    event.preventDefault();
    const { name, agent, message, timezone } = zoned;
    const body = { name, agent, message, schedule: { cron: toCron(zoned), timezone } };
    create.mutate({ body }, { onSuccess: () => setValues((now) => emptyTask(now, { name, message })) });
  };
  if (!canChange) return null;
  return (
    <details className="mb-4 rounded-xl border bg-card px-4 py-3" open={isAskedFor}>
      <summary className="cursor-pointer text-sm font-semibold">{words.title}</summary>
      <form ref={form} className="mt-3 space-y-3" onSubmit={submit}>
        <TaskFields values={zoned} onChange={change} />
        <TimingFields values={zoned} onChange={change} />
        {/* Not in a zone that is only assumed. */}
        <SubmitRow
          change={{ ...create, isPending: create.isPending || whoAmI.isPending }}
          canChange={canChange}
          label={words.create}
          done={words.created}
        />
      </form>
    </details>
  );
}

interface EditScheduleProps {
  readonly schedule: ScheduleView;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** The same fields, filled in. What they cannot show is said, and is not sent. */
export function EditSchedule({ schedule, onSaved, onClose }: EditScheduleProps): ReactNode {
  const { tools, parts } = useWords();
  const words = tools.schedule;
  const explain = useExplain();
  const formId = useId();
  // As it was when it was opened: the list behind it moves on.
  const [before] = useState(schedule);
  const [values, setValues] = useState(() => toValues(schedule));
  const update = useChange(routes.updateSchedule, [routes.listSchedules]);
  const submit = (event: { readonly preventDefault: () => void }): void => {
    event.preventDefault();
    update.mutate({ params: { id: before.id }, body: toPatch(before, values) }, { onSuccess: onSaved });
  };
  const buttons = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button type="submit" form={formId} tone="primary" disabled={update.isPending}>
        {words.save}
      </Button>
    </>
  );
  const error = update.error === null ? null : explain(update.error);
  return (
    <Dialog title={words.editTitle(before.name)} buttons={buttons} error={error} onClose={onClose}>
      <form id={formId} className="space-y-3 text-foreground" onSubmit={submit}>
        <TaskFields values={values} onChange={setValues} />
        {'cron' in before.schedule ? <TimingFields values={values} onChange={setValues} /> : <KeptTiming timing={before.schedule} />}
        {hasMore(before) && <p className="text-sm text-muted-foreground">{words.keepsMore}</p>}
      </form>
    </Dialog>
  );
}

function KeptTiming({ timing }: { readonly timing: Exclude<ScheduleView['schedule'], { readonly cron: string }> }): ReactNode {
  const { tools, owner } = useWords();
  const formats = useFormats();
  const when = 'every' in timing ? owner.schedules.every(timing.every) : owner.schedules.once(formats.time(timing.at));
  return <p className="text-sm text-muted-foreground">{tools.schedule.keepsTiming(when)}</p>;
}

/** What the agent does, and which. */
function TaskFields({ values, onChange }: FieldsProps): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.schedule;
  return (
    <>
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label={words.name} value={values.name} onChange={(name) => onChange({ ...values, name })} required maxLength={100} />
        <AgentField value={values.agent} onChange={(agent) => onChange({ ...values, agent })} label={owner.agent} />
      </div>
      <AreaField
        label={words.message}
        help={words.messageHelp}
        value={values.message}
        onChange={(message) => onChange({ ...values, message })}
        required
        rows={3}
      />
    </>
  );
}

/** When, with the times that it would have. */
function TimingFields({ values, onChange }: FieldsProps): ReactNode {
  const words = useWords().tools.schedule;
  const formats = useFormats();
  const { pattern, timezone } = values;
  const cron = toCron(values);
  const said = useCronWords(cron, formats.locale.slice(0, 2));
  const set = (name: 'cron' | 'time' | 'timezone') => (value: string) => onChange({ ...values, [name]: value });
  return (
    <>
      <div className="grid grid-cols-[repeat(auto-fit,minmax(11rem,1fr))] gap-3">
        <SelectField
          label={words.pattern}
          value={pattern}
          options={timingChoices.map((value) => ({ value, label: words.patterns[value] }))}
          onChange={(chosen) => onChange({ ...values, pattern: chosen })}
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
    </>
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
