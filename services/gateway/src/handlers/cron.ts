import type { Handlers } from '../http/call.ts';

type CronHandlers = Pick<
  Handlers,
  'listSchedules' | 'createSchedule' | 'getSchedule' | 'updateSchedule' | 'deleteSchedule' | 'runSchedule' | 'listScheduleRuns'
>;

/**
 * Schedules are files; the scheduler sees what is changed here. A schedule made with a key has the rights of the owner.
 */
export function cronHandlers(): CronHandlers {
  return {
    listSchedules: async ({ caller: { scope } }) => {
      const { schedules } = await scope.schedules.list();
      return { kind: 'answer', status: 200, json: schedules.map((schedule) => scope.schedules.view(schedule)) };
    },
    createSchedule: async ({ caller: { scope, key }, body }) => {
      const made = await scope.schedules.create(body, { by: { kind: 'key', keyId: key.id }, authority: 'admin' });
      return { kind: 'answer', status: 201, json: scope.schedules.view(made) };
    },
    getSchedule: async ({ caller: { scope }, params }) => {
      return { kind: 'answer', status: 200, json: scope.schedules.view(await scope.schedules.get(params.id)) };
    },
    updateSchedule: async ({ caller: { scope }, params, body }) => {
      return { kind: 'answer', status: 200, json: scope.schedules.view(await scope.schedules.update(params.id, body)) };
    },
    deleteSchedule: async ({ caller: { scope }, params }) => {
      await scope.schedules.remove(params.id);
      return { kind: 'answer', status: 204 };
    },
    runSchedule: async ({ caller: { scope }, params }) => {
      return { kind: 'answer', status: 202, json: scope.schedules.runs.view(await scope.schedules.run(params.id)) };
    },
    listScheduleRuns: async ({ caller: { scope }, params, query }) => {
      const runs = await scope.schedules.history(params.id, query.limit);
      return { kind: 'answer', status: 200, json: runs.map((run) => scope.schedules.runs.view(run)) };
    },
  };
}
