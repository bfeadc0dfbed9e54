import { z } from 'zod';
import { limits } from '../limits.ts';

/** The days of a week, as `hours` name them. */
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const ClockTime = z.string().regex(/^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/u, 'must read 09:00, up to 24:00');

const TeamHours = z
  .strictObject({
    day: z.enum(weekdays).meta({ description: 'The day of the week, in the time zone of the tenant.' }),
    from: ClockTime.meta({ description: 'When staff answers from, as `09:00`.' }),
    until: ClockTime.meta({ description: 'When staff stops answering, on the same day; `24:00` is its end.' }),
  })
  .refine(({ from, until }) => from < until, { error: 'must be later than from', path: ['until'] });
export type TeamHours = z.infer<typeof TeamHours>;

/** When staff answers, and what happens when it does not. Beside `appearance`, as `display` is, for the same reason. */
export const WidgetTeam = z
  .strictObject({
    hours: z
      .array(TeamHours)
      .max(limits.widgetHoursMax)
      .default([])
      .meta({ description: 'When staff answers; empty: at all times. Visitors are told the moments outside of them.' }),
    alert: z
      .strictObject({
        afterMinutes: z
          .int()
          .min(1)
          .max(limits.widgetAlertMaxMinutes)
          .meta({ description: 'How long a conversation may wait for staff; only minutes within `hours` count.' }),
        email: z
          .email()
          .max(limits.emailMaxCharacters)
          .nullable()
          .default(null)
          .meta({ description: 'Who is written to then, where the service has SMTP_URL.' }),
      })
      .nullable()
      .default(null)
      .meta({ description: 'What happens when a handoff is not answered: the event `handoff.unanswered`, and an e-mail. null: nothing.' }),
  })
  .meta({ id: 'WidgetTeam' });
export type WidgetTeam = z.infer<typeof WidgetTeam>;

/** A time in which staff answers. */
export const WidgetOpening = z.strictObject({ from: z.iso.datetime(), until: z.iso.datetime() });
export type WidgetOpening = z.infer<typeof WidgetOpening>;
