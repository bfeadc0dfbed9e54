import { Session } from 'node:inspector/promises';

interface TraceEvent {
  readonly name?: string;
  readonly ph?: string;
}

/** The file system calls that Node itself reports while `work` ran: one name for each call, such as `fs.sync.lstat`. */
export async function listFileCalls(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  const calls: string[] = [];
  session.on('NodeTracing.dataCollected', ({ params }) => {
    const events: readonly TraceEvent[] = params.value;
    calls.push(...events.filter(({ ph }) => ph === 'B' || ph === 'b').map(({ name = '?' }) => name));
  });
  const complete = new Promise<void>((resolve) => {
    session.once('NodeTracing.tracingComplete', () => {
      resolve();
    });
  });
  await session.post('NodeTracing.start', { traceConfig: { includedCategories: ['node.fs.sync', 'node.fs.async'] } });
  await work();
  await session.post('NodeTracing.stop');
  await complete;
  session.disconnect();
  return calls;
}
