// The watchdog's thread. Its clock counts only while the thread itself is scheduled: each look adds at most two
// intervals.
import { writeSync } from 'node:fs';
import { Session, type Debugger } from 'node:inspector';
import { flushCompileCache } from 'node:module';
import { workerData } from 'node:worker_threads';
import { readActivityBoard } from '../concurrency/tasks.ts';
import { LoopSilence, readMainThread } from './loop-silence.ts';
import { HUNG_AFTER_MS, TICK_EVERY_MS, WatchdogCell, type WatchdogThreadData } from './watchdog.ts';

/**
 * The main thread stops for the debugger at the next JavaScript instruction; in native code it never does. On a busy
 * machine it needs seconds to get there, as it describes every script on its way. All in all, a process that hangs is
 * ended within 15 s.
 */
const PAUSE_LOOKS = 7;
const STALL_SHOWN_MS = 10_000;
const FRAMES_SHOWN = 12;
const ACTIVITIES_SHOWN = 20;
const STDOUT = 1;
const FATAL_LEVEL = 60;

const { service, cells: shared, board } = workerData as WatchdogThreadData; // eslint-disable-line typescript/no-unsafe-type-assertion -- watchdog.ts gave it
const cells = new Int32Array(shared);

// Not at the exit: a service that is killed would leave the next start nothing of it.
flushCompileCache();

let seenTicks = Atomics.load(cells, WatchdogCell.ticks);
let lookedAtMs = performance.now();
const silence = new LoopSilence();
let stallAgeMs = 0;

const looking = setInterval(() => {
  const nowMs = performance.now();
  const ranMs = Math.min(nowMs - lookedAtMs, 2 * TICK_EVERY_MS);
  lookedAtMs = nowMs;
  const ticks = Atomics.load(cells, WatchdogCell.ticks);
  const turns = ticks !== seenTicks || Atomics.load(cells, WatchdogCell.debugged) === 1;
  seenTicks = ticks;
  if (turns) silence.noteTick(readMainThread());
  else silence.noteSilence(ranMs, readMainThread());
  reportStall(ranMs);
  if (!silence.isHung) return;
  clearInterval(looking);
  findCulprit(endProcess);
}, TICK_EVERY_MS);

/** Keeps the longest recent stall where the main thread can read it: for readiness and the worker's heartbeat. */
function reportStall(ranMs: number): void {
  // One interval without a tick is the rule, as both threads look equally often.
  const stallMs = Math.round(Math.max(0, silence.silentMs - TICK_EVERY_MS));
  stallAgeMs += ranMs;
  if (stallMs < Atomics.load(cells, WatchdogCell.stallMs) && stallAgeMs < STALL_SHOWN_MS) return;
  Atomics.store(cells, WatchdogCell.stallMs, stallMs);
  stallAgeMs = 0;
}

interface Culprit {
  readonly activity?: unknown;
  readonly stack?: readonly string[];
}

/** Interrupts the main thread and reads its activity and position. The result is empty when it hangs in native code. */
function findCulprit(report: (culprit: Culprit) => void): void {
  const session = new Session();
  session.connectToMainThread();
  // In looks, since a pause of this whole process is none of the main thread's.
  let looksLeft = PAUSE_LOOKS;
  const timer = setInterval(() => {
    looksLeft -= 1;
    if (looksLeft === 0) report({});
  }, TICK_EVERY_MS);
  session.on('Debugger.paused', ({ params }) => {
    const stack = params.callFrames.slice(0, FRAMES_SHOWN).map(describeFrame);
    const [top] = params.callFrames;
    if (top === undefined) return;
    const expression = `globalThis[Symbol.for('concierge.activity')]()`;
    session.post('Debugger.evaluateOnCallFrame', { callFrameId: top.callFrameId, expression, returnByValue: true }, (_error, answer) => {
      clearInterval(timer);
      report({ activity: answer?.result.value, stack });
    });
  });
  session.post('Debugger.enable');
  session.post('Debugger.pause');
}

function describeFrame({ functionName, url, location }: Debugger.CallFrame): string {
  return `${functionName === '' ? '(anonymous)' : functionName} ${url.replace(/^file:\/\//u, '')}:${String(location.lineNumber + 1)}`;
}

/** One line as the service's log writes them; then kill -9, since a hung process handles no other signal. */
function endProcess({ activity, stack }: Culprit): void {
  const running = readActivityBoard(board);
  const line = {
    level: FATAL_LEVEL,
    time: new Date().toISOString(),
    service,
    pid: process.pid,
    activity,
    stack,
    running: running.slice(0, ACTIVITIES_SHOWN).map(parseActivity),
    runningCount: running.length,
    msg: `the event loop did not turn for ${String(HUNG_AFTER_MS / 1000)} s: ending the process`,
  };
  try {
    writeSync(STDOUT, `${JSON.stringify(line)}\n`);
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}

function parseActivity(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
