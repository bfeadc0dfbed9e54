import { describe, expect, it } from '@jest/globals';
import type { TurnRecord } from '@concierge/contract';
import { cleanRun, event, buildMessages, buildRecord, replyTranscript, sessionFile, transcript, turnIds } from './audit/audit-fixture.ts';
import type { AuditInput } from './audit/audit-input.ts';
import { reportOn } from './audit/auditor.ts';
import type { Transcript } from './audit/evidence.ts';

type Fault = AuditInput['faults'][number];
type Call = AuditInput['ledger'][number];

const markers = ['mk-c00-000-aaaa', 'mk-c00-001-bbbb'] as const;

function kindsIn(input: AuditInput): string[] {
  return [...new Set(reportOn(input).findings.map(({ invariant, kind }) => `${invariant} ${kind}`))].toSorted();
}

function withReader(...more: readonly Transcript[]): AuditInput {
  const input = cleanRun();
  return { ...input, transcripts: [...input.transcripts, ...more] };
}

/** The first turn ended like this, for its file and for its reader. */
function failedWith(code: 'turn_timeout' | 'turn_crashed', change: Partial<AuditInput> = {}): AuditInput {
  const record: TurnRecord = { ...buildRecord(0), status: 'failed', error: { code, message: '' } };
  const failed: Transcript = {
    ...transcript(0, 'asker'),
    lines: [event('0-1', 'session', {}), event('7-1', 'error', { code, message: '', retryable: true, turnId: turnIds[0] })],
  };
  const sessions = [sessionFile([...buildMessages(0), ...buildMessages(1)], [record, buildRecord(1)])];
  return { ...cleanRun(), sessions, transcripts: [failed, transcript(1, 'asker')], ...change };
}

function call(at: { readonly event: Call['event']; readonly number: number; readonly atMs: number }, marker: string = markers[0]): Call {
  return { ...at, marker, round: 0, caller: 'worker-1' };
}

describe('readers of what was saved, in a run in which a fault is planted', () => {
  it('are found when the one JSON answer is not the one in the session file', () => {
    const whole = replyTranscript(0, 'jsonRetrier', { text: 'one two' });
    expect(kindsIn(withReader(whole))).toEqual([]);
    expect(kindsIn(withReader(replyTranscript(0, 'jsonRetrier', { text: 'one' })))).toEqual(['I20 reply differs']);
    expect(kindsIn(withReader(replyTranscript(1, 'jsonAsker', { text: 'looks first. three four', calls: [] })))).toEqual([
      'I20 reply differs',
    ]);
  });

  it('are found when a completion lacks words, and not when it marks itself that it repeats them', () => {
    const again = 'one t\n\n[The text above was cut off and is void. Again:]\n\none two';
    expect(kindsIn(withReader(replyTranscript(0, 'completionStreamer', { text: again })))).toEqual([]);
    expect(kindsIn(withReader(replyTranscript(0, 'completionStreamer', { text: 'one wo' })))).toEqual(['I20 reply differs']);
    expect(kindsIn(withReader({ ...replyTranscript(0, 'completionAsker', { text: '' }), lines: [] }))).toEqual(['I1 unanswered']);
  });

  it('are found when an answered turn is reported missing', () => {
    expect(kindsIn(withReader(replyTranscript(0, 'jsonRetrier', { error: 'not_found' })))).toEqual(['I20 reply differs']);
    const gone = { code: 'not_found', message: '', retryable: false, turnId: turnIds[0] };
    const lines = [event('0-1', 'session', {}), event('7-1', 'error', gone)];
    expect(kindsIn(withReader({ turnId: turnIds[0], reader: 'rereader', lines }))).toEqual(['I20 end differs']);
  });

  it('are found when they hear that a failed turn is done', () => {
    const failed = failedWith('turn_crashed', { faults: [1, 2, 3].map((atMs): Fault => ({ atMs, kind: 'kill', target: 'worker-0' })) });
    expect(kindsIn(failed)).toEqual([]);
    expect(kindsIn({ ...failed, transcripts: [transcript(0, 'asker'), transcript(1, 'asker')] })).toEqual(['I20 end differs']);
  });
});

describe('turns that failed, in a run in which a fault is planted', () => {
  it('are found when no one failed them but a clock', () => {
    expect(kindsIn(failedWith('turn_timeout'))).toEqual(['I21 failed']);
  });

  it('are found when they are ended for crashes that did not happen', () => {
    expect(kindsIn(failedWith('turn_crashed'))).toEqual(['I1 failed']);
  });

  it('are found beside a poison turn, which itself has three starts and no fourth', () => {
    const [innocent, poison] = cleanRun().acknowledged;
    if (innocent === undefined || poison === undefined) throw new Error('no turns');
    const starts = (count: number): Call[] => Array.from({ length: count }, (_, number) => call({ event: 'start', number, atMs: number }));
    const acknowledged = [{ ...innocent, kind: 'poison' as const }, poison];
    expect(kindsIn(failedWith('turn_crashed', { acknowledged, ledger: starts(3) }))).toEqual([]);
    expect(kindsIn(failedWith('turn_crashed', { acknowledged, ledger: starts(4) }))).toEqual(['I10 other starts']);
    const other = [innocent, { ...poison, kind: 'poison' as const }];
    expect(kindsIn(failedWith('turn_crashed', { acknowledged: other }))).toContain('I22 innocent failed');
  });
});

describe('what happened on the way, in a run in which a fault is planted', () => {
  it('shows a turn that was taken up late while a clock was wrong', () => {
    const ledger = [
      call({ event: 'start', number: 1, atMs: 1000 }),
      call({ event: 'end', number: 1, atMs: 2000 }),
      call({ event: 'start', number: 2, atMs: 40_000 }),
      call({ event: 'end', number: 2, atMs: 40_100 }),
    ];
    const kill: Fault = { atMs: 2000, kind: 'kill', target: 'worker-1' };
    const clock: Fault = { atMs: 1900, kind: 'clock', target: 'redis', offsetSeconds: -30 };
    expect(kindsIn({ ...cleanRun(), ledger, faults: [clock, kill] })).toEqual(['I21 slow recovery']);
    expect(kindsIn({ ...cleanRun(), ledger: ledger.slice(0, 2), faults: [clock, kill] })).toEqual([]);
  });

  it('shows an event loop that hung and was not ended', () => {
    const hang = (endedAfterMs: number | null): Fault => ({ atMs: 1, kind: 'hang', target: 'cron-0', endedAfterMs });
    expect(kindsIn({ ...cleanRun(), faults: [hang(11_000)] })).toEqual([]);
    expect(kindsIn({ ...cleanRun(), faults: [hang(null)] })).toEqual(['I23 hung']);
  });

  it('shows a full disk on which all went on as if nothing were', () => {
    const full = (refusals: number, wasReady: boolean): Fault => ({ atMs: 1, kind: 'disk-full', target: 'disk', refusals, wasReady });
    expect(kindsIn({ ...cleanRun(), faults: [full(4, false)] })).toEqual([]);
    expect(kindsIn({ ...cleanRun(), faults: [full(4, true)] })).toEqual(['I14 still ready']);
    expect(kindsIn({ ...cleanRun(), faults: [full(0, false)] })).toEqual(['I14 no refusal']);
  });

  it('shows quiet tenants that stand in the queue of a loud one, and a part of the flood that was lost', () => {
    const flooded = [{ marker: 'mk-loud-0-0', atMs: 0 }];
    const beside = { marker: 'mk-beside-0-0', conversation: 'c01', atMs: 0 };
    const buildStart = (marker: string, atMs: number): Call => call({ event: 'start', number: atMs, atMs }, marker);
    const flood = (besideMs: number): AuditInput => ({
      ...cleanRun(),
      flooded,
      asked: [...cleanRun().asked, beside],
      acknowledged: [...cleanRun().acknowledged],
      ledger: [buildStart('mk-loud-0-0', 9000), buildStart('mk-beside-0-0', besideMs)],
    });
    expect(kindsIn(flood(100))).toEqual(['I1 unacknowledged']);
    expect(kindsIn(flood(8000))).toEqual(['I1 unacknowledged', 'I13 behind']);
    expect(kindsIn({ ...cleanRun(), flooded })).toEqual(['I1 lost']);
  });
});
