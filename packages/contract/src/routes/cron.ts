import { z } from 'zod';
import { NewSchedule, SchedulePatch, ScheduleRunView, ScheduleTimes, ScheduleTimesQuery, ScheduleView } from '../tenants/schedule.ts';
import { limitParameter, defineRoute } from './route.ts';

const params = z.object({ id: z.string().min(1).max(64) });

export const listSchedules = defineRoute({
  id: 'listSchedules',
  method: 'get',
  path: '/api/cron',
  tag: 'cron',
  summary: 'Schedules, the oldest first',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Schedules, with their next time.', json: z.array(ScheduleView) } },
  errors: [],
});

export const createSchedule = defineRoute({
  id: 'createSchedule',
  audit: 'schedule.create',
  method: 'post',
  path: '/api/cron',
  tag: 'cron',
  summary: 'Make a schedule',
  description: 'Runs are at least one minute apart, 15 on the preview plan. Each run has its own conversation.',
  auth: 'key',
  scopes: ['admin'],
  body: { kind: 'json', schema: NewSchedule },
  answers: { 201: { description: 'It is made.', json: ScheduleView } },
  errors: ['conflict'],
});

export const listScheduleTimes = defineRoute({
  id: 'listScheduleTimes',
  method: 'get',
  path: '/api/schedule-times',
  tag: 'cron',
  summary: 'When a schedule would run',
  description: 'Makes nothing. What would be refused as the `schedule` of a schedule is refused here, in the same words.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: ScheduleTimesQuery,
  answers: { 200: { description: 'The next times, counted from now, without jitter.', json: ScheduleTimes } },
  errors: [],
});

export const getSchedule = defineRoute({
  id: 'getSchedule',
  method: 'get',
  path: '/api/cron/{id}',
  tag: 'cron',
  summary: 'One schedule',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  answers: { 200: { description: 'The schedule.', json: ScheduleView } },
  errors: ['not_found'],
});

export const updateSchedule = defineRoute({
  id: 'updateSchedule',
  audit: 'schedule.update',
  method: 'patch',
  path: '/api/cron/{id}',
  tag: 'cron',
  summary: 'Change a schedule, pause it or resume it',
  description: 'Each field replaces the one that was there. In force within seconds. What falls into a pause is not made up for.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: SchedulePatch },
  answers: { 200: { description: 'The schedule as it is now.', json: ScheduleView } },
  errors: ['not_found', 'conflict'],
});

export const deleteSchedule = defineRoute({
  id: 'deleteSchedule',
  audit: 'schedule.delete',
  method: 'delete',
  path: '/api/cron/{id}',
  tag: 'cron',
  summary: 'Remove a schedule',
  description: 'Its history goes with it; the conversations of its runs stay.',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 204: { description: 'It is gone.' } },
  errors: ['not_found'],
});

export const runSchedule = defineRoute({
  id: 'runSchedule',
  audit: 'schedule.run',
  method: 'post',
  path: '/api/cron/{id}/run',
  tag: 'cron',
  summary: 'Run a schedule now',
  description: 'Beside its times, also while it is paused. It begins within seconds, or when the run before it has ended.',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 202: { description: 'The run, which waits to be started.', json: ScheduleRunView } },
  errors: ['not_found', 'too_many_waiting'],
});

export const listScheduleRuns = defineRoute({
  id: 'listScheduleRuns',
  method: 'get',
  path: '/api/cron/{id}/runs',
  tag: 'cron',
  summary: 'Runs of a schedule, the newest first',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  query: z.strictObject({ limit: limitParameter }),
  answers: { 200: { description: 'Runs; old ones are cleared away.', json: z.array(ScheduleRunView) } },
  errors: ['not_found'],
});
