import { describe, expect, it } from '@jest/globals';
import { limits, type UploadRef } from '@concierge/contract';
import { dynamicContext, heartbeatNews, sentText, timestamp } from './user-message.ts';
import { buildSystemPrompt } from './system-prompt.ts';

const file = (name: string, text: string): { name: string; text: string } => ({ name, text });

describe('the system prompt', () => {
  it('holds the files under fixed headings in a fixed order, what changes most last', () => {
    const files = ['MEMORY.md', 'BOOTSTRAP-2.md', 'IDENTITY.md', 'BOOTSTRAP.md', 'TOOLS.md', 'AGENTS.md', 'USER.md', 'SOUL.md'].map(
      (name) => file(name, `of ${name}`),
    );
    const prompt = buildSystemPrompt({ files, skills: [] });
    const headings = [...prompt.matchAll(/^# (.+)$/gmu)].map(([, heading]) => heading);
    expect(headings).toEqual([
      'Identity',
      'Soul',
      'Agents',
      'Tools',
      'BOOTSTRAP-2',
      'BOOTSTRAP',
      'How messages reach you',
      'User',
      'Memory',
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

  it('keeps its bytes up to MEMORY when a note was kept, and up to USER for another contact', () => {
    const fixed = ['IDENTITY.md', 'SOUL.md', 'AGENTS.md', 'TOOLS.md', 'BOOTSTRAP.md'].map((name) => file(name, `of ${name} `.repeat(50)));
    const skills = [{ name: 'opening', description: 'When we are open' }];
    const promptWith = (user: string, memory: string): string =>
      buildSystemPrompt({ files: [...fixed, file('USER.md', user), file('MEMORY.md', memory)], skills, part: 'You sell.' });
    const [before, after] = [promptWith('Ann', '- tea'), promptWith('Ann', '- tea\n- no sugar')];
    expect(after.startsWith(before)).toBe(true);
    const bob = promptWith('Bob', '- coffee');
    expect(bob.slice(0, bob.indexOf('# User'))).toBe(before.slice(0, before.indexOf('# User')));
    expect(before.slice(before.indexOf('# User'))).not.toMatch(/^# (?!User|Memory)/mu);
  });

  it('is the same bytes for the same files, whenever it is built', () => {
    const files = [file('IDENTITY.md', 'I'), file('USER.md', 'U')];
    expect(buildSystemPrompt({ files: files.toReversed(), skills: [] })).toBe(buildSystemPrompt({ files, skills: [] }));
  });
});

describe('the dynamic context', () => {
  const now = new Date('2026-07-01T22:30:05Z');
  const turn = { messages: [{ text: 'hi' }], timezone: undefined, now, attachments: [] };
  const upload = (type: UploadRef['type'], name = 'a "b".pdf'): UploadRef => ({ id: `u_${'0'.repeat(32)}`, name, type, size: 1 });

  it('states the time in the tenant’s zone', () => {
    expect(timestamp(now, 'Europe/Berlin')).toBe('Thursday 2026-07-02 00:30:05 GMT+02:00 (Europe/Berlin)');
    expect(timestamp(now, 'UTC')).toBe('Wednesday 2026-07-01 22:30:05 GMT+00:00 (UTC)');
  });

  it('stands before the user’s own words', () => {
    const sent = dynamicContext({ ...turn, heartbeat: 'new' });
    expect(sentText({ sent, heartbeat: '- look after the inbox' })).toBe(
      '<context>\nCurrent time: Wednesday 2026-07-01 22:30:05 GMT+00:00 (UTC)\n<heartbeat>\n- look after the inbox\n</heartbeat>\n</context>\n\nhi',
    );
  });

  it('shows HEARTBEAT once, and again when it has changed', () => {
    expect(heartbeatNews(null, undefined)).toBeUndefined();
    expect(heartbeatNews(' look\n', undefined)).toBe('new');
    expect(heartbeatNews(' look\n', 'look')).toBe('unchanged');
    expect(heartbeatNews('look again', 'look')).toBe('new');
    expect(heartbeatNews(null, 'look')).toBe('gone');
    expect(heartbeatNews(null, '')).toBeUndefined();
    expect(heartbeatNews('look', '')).toBe('new');
    expect(dynamicContext({ ...turn, heartbeat: 'unchanged' })).toContain('(UTC)\nHEARTBEAT is as it was shown last.\n</context>');
    expect(dynamicContext({ ...turn, heartbeat: 'gone' })).toContain('(UTC)\nHEARTBEAT is empty now.\n</context>');
  });

  it('leaves a message that looks like a context to its writer', () => {
    const sent = dynamicContext({ ...turn, messages: [{ text: '<context>\n</context>' }], heartbeat: 'new' });
    expect(sentText({ sent, heartbeat: 'mine' })).toMatch(
      /\(UTC\)\n<heartbeat>\nmine\n<\/heartbeat>\n<\/context>\n\n<context>\n<\/context>$/u,
    );
  });

  it('states when another agent asks', () => {
    expect(dynamicContext({ ...turn, isDelegated: true })).toContain('GMT+00:00 (UTC)\nAnother agent asks for this.');
    expect(dynamicContext(turn)).not.toContain('Another agent');
  });

  it('adds the text of attachments and names what else there is', () => {
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

  it('cuts one long attachment, and several together, and marks the cuts', () => {
    const text = 'z'.repeat(limits.attachmentTextMaxCharacters + 10);
    const sent = dynamicContext({ ...turn, attachments: [1, 2, 3].map(() => ({ upload: upload('text/plain'), text })) });
    expect(sent.match(/z/gu)).toHaveLength(2 * limits.attachmentTextMaxCharacters);
    expect(sent.match(/\[cut here: the file is longer\]/gu)).toHaveLength(3);
  });
});
