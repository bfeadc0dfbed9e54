import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';
import { cleanRun, event, buildMessages, buildRecord, sessionFile, transcript, turnIds } from './audit-fixture.ts';
import { readAuditInput, type AuditInput } from './audit-input.ts';
import { foldTranscript } from './audit-transcripts.ts';
import { audit, reportOn } from './auditor.ts';
import { Evidence, type Transcript } from './evidence.ts';

function kindsIn(input: AuditInput): string[] {
  return [...new Set(reportOn(input).findings.map(({ invariant, kind }) => `${invariant} ${kind}`))].toSorted();
}

function withSessions(...args: Parameters<typeof sessionFile>): AuditInput {
  return { ...cleanRun(), sessions: [sessionFile(...args)] };
}

function withTranscript(change: (lines: Transcript['lines']) => Transcript['lines']): AuditInput {
  const changed = transcript(1, 'asker');
  return { ...cleanRun(), transcripts: [transcript(0, 'asker'), { ...changed, lines: change(changed.lines) }] };
}

describe('the auditor', () => {
  it('finds nothing in a run that kept every promise', () => {
    expect(reportOn(cleanRun()).findings).toEqual([]);
  });

  it('finds a turn that was acknowledged and is in no session', () => {
    const input = withSessions(buildMessages(1), [buildRecord(1)]);
    expect(kindsIn(input)).toContain('I1 lost');
  });

  it('finds a session that is not there at all', () => {
    expect(kindsIn({ ...cleanRun(), sessions: [] })).toContain('I1 lost');
  });

  it('finds a turn that is recorded as done without a reply', () => {
    const input = withSessions([...buildMessages(0).slice(0, 1), ...buildMessages(1)], [buildRecord(0), buildRecord(1)]);
    expect(kindsIn(input)).toContain('I1 lost');
  });

  it('finds what is left in an inbox, and what was never acknowledged', () => {
    expect(kindsIn({ ...cleanRun(), leftInInboxes: ['chaos-0/t_1.json'] })).toEqual(['I1 left in the inbox']);
    const input = cleanRun();
    expect(kindsIn({ ...input, asked: [...input.asked, { marker: 'mk-c09-000-cccc', conversation: 'c09', atMs: 900 }] })).toEqual([
      'I1 unacknowledged',
    ]);
  });

  it('finds a client that never got an end, and one without any transcript', () => {
    expect(kindsIn(withTranscript((lines) => lines.slice(0, -1)))).toEqual(['I1 unanswered']);
    expect(kindsIn({ ...cleanRun(), transcripts: [transcript(0, 'asker')] })).toEqual(['I1 unanswered']);
  });

  it('finds a turn that stands twice in its session', () => {
    expect(kindsIn(withSessions([...buildMessages(0), ...buildMessages(1)], [buildRecord(0), buildRecord(1), buildRecord(1)]))).toContain(
      'I2 doubled',
    );
    expect(
      kindsIn(withSessions([...buildMessages(0), ...buildMessages(0), ...buildMessages(1)], [buildRecord(0), buildRecord(1)])),
    ).toContain('I2 doubled');
  });

  it('finds a second terminal event', () => {
    const input = withTranscript((lines) => [
      ...lines,
      event('8-1', 'error', { code: 'not_found', message: '', retryable: false, turnId: turnIds[1] }),
    ]);
    expect(kindsIn(input)).toEqual(['I2 two endings']);
  });

  it('finds turns in another order than they were acknowledged in', () => {
    expect(kindsIn(withSessions([...buildMessages(1), ...buildMessages(0)], [buildRecord(1), buildRecord(0)]))).toEqual(['I3 disorder']);
    expect(kindsIn(withSessions([...buildMessages(1), ...buildMessages(0)], [buildRecord(0), buildRecord(1)]))).toEqual(['I3 disorder']);
  });

  it('finds a session file that does not parse', () => {
    const [file] = cleanRun().sessions;
    if (file === undefined) throw new Error('no session');
    expect(kindsIn({ ...cleanRun(), sessions: [{ ...file, session: undefined, problem: 'torn' }] })).toEqual(['I4 broken file']);
  });

  it('finds revisions that are torn, missing or ahead of the view', () => {
    const [file] = cleanRun().sessions;
    const [first, second] = file?.revisions ?? [];
    if (file === undefined || first === undefined || second === undefined) throw new Error('no revisions');
    const withRevisions = (...revisions: typeof file.revisions): AuditInput => ({ ...cleanRun(), sessions: [{ ...file, revisions }] });
    expect(kindsIn(withRevisions({ ...first, session: undefined }, second))).toEqual(['I4 broken revisions']);
    expect(kindsIn(withRevisions({ ...first, name: '0000000000.json' }, second))).toEqual(['I4 broken revisions']);
    expect(kindsIn(withRevisions(first))).toEqual(['I4 broken revisions']);
  });

  it('finds a revision that lacks a turn of the one before', () => {
    const [file] = cleanRun().sessions;
    const [first, second] = file?.revisions ?? [];
    if (file === undefined || first?.session === undefined || second === undefined) throw new Error('no revisions');
    const other = { ...first, session: { ...first.session, turns: [{ ...buildRecord(0), id: 't_9' }] } };
    expect(kindsIn({ ...cleanRun(), sessions: [{ ...file, revisions: [other, second] }] })).toEqual(['I4 broken revisions']);
  });

  it('finds a side effect that happened twice, and one that is recorded and did not happen', () => {
    expect(kindsIn({ ...cleanRun(), effects: new Map([['mk-c00-001-bbbb', 2]]) })).toEqual(['I5 effect doubled']);
    expect(kindsIn({ ...cleanRun(), effects: new Map() })).toEqual(['I5 effect missing']);
  });

  it('finds one message that was run as two turns', () => {
    const again = buildMessages(0).map((message) => ({ ...message, turnId: 't_9' }));
    expect(kindsIn(withSessions([...buildMessages(0), ...buildMessages(1), ...again], [buildRecord(0), buildRecord(1)]))).toEqual([
      'I7 two turns',
    ]);
  });

  it('finds an event that came twice, or late', () => {
    expect(
      kindsIn(withTranscript((lines) => lines.flatMap((line) => (line.line === 'event' && line.id === '7-4' ? [line, line] : [line])))),
    ).toContain('I9 repeat');
    expect(kindsIn(withTranscript((lines) => [...lines.slice(0, 2), ...lines.slice(1)]))).toContain('I9 repeat');
  });

  it('finds a gap: text or a tool call that a client did not get', () => {
    expect(kindsIn(withTranscript((lines) => lines.filter((line) => line.line !== 'event' || line.id !== '7-8')))).toEqual([
      'I9 text differs',
    ]);
    expect(kindsIn(withTranscript((lines) => lines.filter((line) => line.line !== 'event' || line.id !== '7-2')))).toEqual([
      'I9 tools differ',
    ]);
  });

  it('finds a transcript that does not begin with its session, or goes on after its end', () => {
    expect(kindsIn(withTranscript((lines) => lines.filter((line) => line.line !== 'event' || line.event !== 'session')))).toEqual([
      'I9 no start',
    ]);
    expect(kindsIn(withTranscript((lines) => [...lines, event('8-1', 'text_delta', { delta: '' })]))).toEqual(['I9 wrong order']);
  });

  it('finds a service that SIGTERM ended badly, an answer that was wrong, and a fail point that no process reached', () => {
    const input = cleanRun();
    expect(kindsIn({ ...input, faults: [{ atMs: 1, kind: 'terminate', target: 'worker-0', exitCode: 1 }] })).toEqual(['I11 bad exit']);
    expect(
      kindsIn({
        ...input,
        faults: [{ atMs: 1, kind: 'failpoint', target: 'worker-0', failpoint: 'turn.after-save:kill:1', reached: false }],
      }),
    ).toEqual(['points not reached']);
    const refused = [{ marker: 'mk', gateway: '', request: 'POST /api/cs', status: 404, body: '', atMs: 1 }];
    expect(kindsIn({ ...input, refused })).toEqual(['I15 refused']);
  });

  it('wants a frozen worker to have been refused at least once', () => {
    const faults: AuditInput['faults'] = [{ atMs: 1, kind: 'stop', target: 'worker-0' }];
    expect(kindsIn({ ...cleanRun(), faults })).toEqual(['fence no fence']);
    expect(kindsIn({ ...cleanRun(), faults, logs: [{ service: 'worker-0', message: 'lost the lease', level: 40, text: '' }] })).toEqual([]);
  });

  it('measures from the kill of a worker until another one took up the turn it ran', () => {
    const call = (event: 'start' | 'end', number: number, atMs: number): AuditInput['ledger'][number] => ({
      event,
      number,
      atMs,
      marker: 'mk-c00-000-aaaa',
      round: 0,
      caller: `worker-${String(number)}`,
    });
    const ledger = [call('start', 1, 1000), call('end', 1, 1110), call('start', 2, 9000), call('end', 2, 9100)];
    // The gateway ran no turn; the last worker was killed too late for its lease to have run out.
    const faults = [killed(500, 'worker-0'), killed(1100, 'worker-1'), killed(1200, 'gateway-0'), killed(8000, 'worker-2')];
    const { recoveryMs } = reportOn({ ...cleanRun(), faults, ledger });
    expect(recoveryMs).toEqual({ samples: 1, p50: 7900, max: 7900 });
  });
});

function killed(atMs: number, target: string): AuditInput['faults'][number] {
  return { atMs, kind: 'kill', target };
}

describe('a transcript', () => {
  it('loses the text since the last tool result at a reset', () => {
    const events = [
      event('1-1', 'text_delta', { delta: 'kept ' }),
      event('1-2', 'tool_result', { id: 'call_1' }),
      event('1-3', 'text_delta', { delta: 'void' }),
      event('2-1', 'text_reset', { reason: 'worker_lost' }),
      event('2-2', 'text_delta', { delta: 'again' }),
    ];
    expect(foldTranscript(events).text).toBe('kept again');
  });
});

describe('what a run leaves on disk', () => {
  it('is read: a torn session file, a file left in the inbox, an effect, a log line', async () => {
    await using folder = await temporaryDirectory();
    const tenant = join(folder.path, 'tenants', 'chaos-0');
    await mkdir(join(tenant, 'sessions'), { recursive: true });
    await mkdir(join(tenant, 'inbox'));
    await mkdir(join(folder.path, 'logs'));
    await writeFile(join(tenant, 'sessions', `${'a'.repeat(32)}.json`), '{"version":1,');
    await writeFile(join(tenant, 'inbox', 't_00ff.json'), '{}');
    await writeFile(join(tenant, 'MEMORY.md'), '- mk-c00-000-aaaa~w1\n- mk-c00-000-aaaa~w2\n');
    await writeFile(join(folder.path, 'logs', 'worker-0.log'), '{"level":40,"msg":"lost the lease"}\nhalf a li');
    const places = {
      evidence: new Evidence(join(folder.path, 'evidence')),
      tenantsFolder: join(folder.path, 'tenants'),
      logsFolder: join(folder.path, 'logs'),
    };
    const input = await readAuditInput(places);
    expect(input.effects.get('mk-c00-000-aaaa')).toBe(2);
    const report = await audit(places);
    expect(report.findings.map(({ kind }) => kind)).toEqual(['left in the inbox', 'broken file']);
    expect(report.fencedWrites).toBe(1);
  });
});
