import { weekdays, type TeamHours, type WidgetTeam } from '@concierge/contract';
import type { ReactNode } from 'react';
import { TextField } from '../parts/fields.tsx';
import { useWords } from '../words/words.tsx';

interface TeamFieldsProps {
  readonly team: WidgetTeam;
  /** False: the service sends none. */
  readonly sendsEmail: boolean;
  readonly onChange: (team: WidgetTeam) => void;
}

const usual = { from: '09:00', until: '17:00' } as const;

/** When staff answers, and what happens when it does not. Of a day with several times the first one is shown. */
export function WidgetTeamFields({ team, sendsEmail, onChange }: TeamFieldsProps): ReactNode {
  const words = useWords().owner.settings.team;
  const { hours, alert } = team;
  const setDay = (day: TeamHours['day'], next: TeamHours | null): void => {
    const first = hours.find((one) => one.day === day);
    const others = hours.filter((one) => (next === null ? one.day !== day : one !== first));
    onChange({ ...team, hours: next === null ? others : [...others, next] });
  };
  const minutes = alert === null ? '' : String(alert.afterMinutes);
  return (
    <fieldset className="space-y-3 rounded-lg border p-3">
      <legend className="px-1 text-xs font-medium text-muted-foreground">{words.title}</legend>
      <p className="text-xs text-muted-foreground">{words.about}</p>
      {weekdays.map((day) => (
        <DayFields key={day} day={day} shown={hours.find((one) => one.day === day) ?? null} onChange={(next) => setDay(day, next)} />
      ))}
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          label={words.afterMinutes}
          help={words.afterMinutesHelp}
          type="number"
          min={1}
          max={10_080}
          value={minutes}
          onChange={(text) => {
            const afterMinutes = Math.round(Number(text));
            onChange({ ...team, alert: afterMinutes < 1 ? null : { email: alert?.email ?? null, afterMinutes } });
          }}
        />
        <TextField
          label={words.email}
          help={sendsEmail ? undefined : words.noEmail}
          type="email"
          maxLength={254}
          disabled={alert === null}
          value={alert?.email ?? ''}
          onChange={(email) => {
            if (alert !== null) onChange({ ...team, alert: { ...alert, email: email === '' ? null : email } });
          }}
        />
      </div>
    </fieldset>
  );
}

interface DayFieldsProps {
  readonly day: TeamHours['day'];
  readonly shown: TeamHours | null;
  readonly onChange: (next: TeamHours | null) => void;
}

function DayFields({ day, shown, onChange }: DayFieldsProps): ReactNode {
  const words = useWords().owner.settings.team;
  const name = words.days[day];
  const time = 'h-9 rounded-lg border border-input bg-background px-2 text-sm';
  return (
    <div className="flex min-h-9 flex-wrap items-center gap-2 text-sm">
      <label className="flex w-36 items-center gap-2">
        <input
          type="checkbox"
          className="size-4"
          checked={shown !== null}
          onChange={({ target }) => onChange(target.checked ? { day, ...usual } : null)}
        />
        {name}
      </label>
      {shown !== null && (
        <>
          <input
            type="time"
            required
            aria-label={words.from(name)}
            className={time}
            value={shown.from}
            onChange={({ target }) => onChange({ ...shown, from: target.value })}
          />
          <input
            type="time"
            required
            aria-label={words.until(name)}
            className={time}
            value={shown.until === '24:00' ? '23:59' : shown.until}
            onChange={({ target }) => onChange({ ...shown, until: target.value })}
          />
        </>
      )}
    </div>
  );
}
