import { describe, expect, it } from '@jest/globals';
import { limits, type UploadRef } from '@concierge/contract';
import { dynamicContext, timestamp } from './dynamic-context.ts';
import { buildSystemPrompt } from './system-prompt.ts';

const file = (name: string, text: string): { name: string; text: string } => ({ name, text });

describe('the system prompt', () => {
  it('holds the files under fixed headings in a fixed order, BOOTSTRAP files last', () => {
    const files = ['MEMORY.md', 'BOOTSTRAP-2.md', 'IDENTITY.md', 'BOOTSTRAP.md', 'TOOLS.md', 'AGENTS.md', 'USER.md', 'SOUL.md'].map(
      (name) => file(name, `of ${name}`),
    );
    const prompt = buildSystemPrompt({ files, skills: [] });
    const headings = [...prompt.matchAll(/^# (.+)$/gmu)].map(([, heading]) => heading);
    expect(headings).toEqual([
      'Identity',
      'Soul',
      'User',
      'Agents',
      'Tools',
      'Memory',
      'BOOTSTRAP-2',
      'BOOTSTRAP',
      'How messages reach you',
    ]);
    for (const { text } of files) expect(prompt).toContain(text);
  });

  it('has no heading for a file that is missing or empty', () => {
    expect(buildSystemPrompt({ files: [file('SOUL.md', ' \n')], skills: [] })).not.toContain('# Soul');
  });

  it('names skills with one line each and nothing of their bodies', () => {
    const skills = [
      { name: 'refunds', description: 'How to\nrefund' },
      { name: 'opening', description: 'When we are open' },
    ];
    expect(buildSystemPrompt({ files: [], skills })).toContain('- opening: When we are open\n- refunds: How to refund\n');
  });

  it('has an agent’s own part after what agents share, and before the skills', () => {
    const prompt = buildSystemPrompt({
      files: [file('SOUL.md', 'soul')],
      skills: [{ name: 'a', description: 'b' }],
      part: '\nYou sell.\n',
    });
    expect([...prompt.matchAll(/^# (.+)$/gmu)].map(([, heading]) => heading)).toEqual([
      'Soul',
      'Your part',
      'Skills',
      'How messages reach you',
    ]);
    expect(prompt).toContain('\n\nYou sell.\n\n');
    expect(buildSystemPrompt({ files: [], skills: [], part: null })).toBe(buildSystemPrompt({ files: [], skills: [] }));
  });

  it('is the same bytes for the same files, whenever it is built', () => {
    const files = [file('IDENTITY.md', 'I'), file('USER.md', 'U')];
    expect(buildSystemPrompt({ files: files.toReversed(), skills: [] })).toBe(buildSystemPrompt({ files, skills: [] }));
  });
});

describe('the dynamic context', () => {
  const now = new Date('2026-07-01T22:30:05Z');
  const turn = { messages: [{ text: 'hi' }], heartbeat: null, timezone: undefined, now, attachments: [] };
  const upload = (type: UploadRef['type'], name = 'a "b".pdf'): UploadRef => ({ id: `u_${'0'.repeat(32)}`, name, type, size: 1 });

  it('tells the time in the tenant’s zone', () => {
    expect(timestamp(now, 'Europe/Berlin')).toBe('Thursday 2026-07-02 00:30:05 GMT+02:00 (Europe/Berlin)');
    expect(timestamp(now, 'UTC')).toBe('Wednesday 2026-07-01 22:30:05 GMT+00:00 (UTC)');
  });

  it('stands before the user’s own words', () => {
    expect(dynamicContext({ ...turn, heartbeat: '- look after the inbox\n' })).toBe(
      '<context>\nCurrent time: Wednesday 2026-07-01 22:30:05 GMT+00:00 (UTC)\n<heartbeat>\n- look after the inbox\n</heartbeat>\n</context>\n\nhi',
    );
  });

  it('says so when another agent asks', () => {
    expect(dynamicContext({ ...turn, isDelegated: true })).toContain('GMT+00:00 (UTC)\nAnother agent asks for this.');
    expect(dynamicContext(turn)).not.toContain('Another agent');
  });

  it('adds the text of attachments and says what else there is', () => {
    const sent = dynamicContext({
      ...turn,
      attachments: [
        { upload: upload('application/pdf'), text: 'page one' },
        { upload: upload('image/png'), text: undefined },
        { upload: upload('application/pdf'), text: undefined },
      ],
    });
    expect(sent).toContain('name="a &quot;b&quot;.pdf" type="application/pdf">\npage one\n</attachment>');
    expect(sent).toContain('shown as an image');
    expect(sent).toContain('no text could be read');
  });

  it('cuts one long attachment, and several together, and says so', () => {
    const text = 'z'.repeat(limits.attachmentTextMaxCharacters + 10);
    const sent = dynamicContext({ ...turn, attachments: [1, 2, 3].map(() => ({ upload: upload('text/plain'), text })) });
    expect(sent.match(/z/gu)).toHaveLength(2 * limits.attachmentTextMaxCharacters);
    expect(sent.match(/\[cut here: the file is longer\]/gu)).toHaveLength(3);
  });
});
