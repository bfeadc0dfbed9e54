import { describe, expect, it } from '@jest/globals';
import type { SessionMessage } from '@concierge/contract';
import { embeddedText, readQuestion, withoutSpeakers } from '@concierge/index';
import { notePassages, sessionPassages } from './passages.ts';
import { cutSnippet } from './rank-texts.ts';

const paragraph = (name: string, sentences: number): string =>
  Array.from({ length: sentences }, (_, index) => `Sentence ${String(index)} of ${name} says something.`).join(' ');

describe('passages of a note', () => {
  it('follow its headings, with the way to them and their line', () => {
    const text = '# Delivery\n\nThree days.\n\n## Abroad\n\nTen days.\n\n### Islands\nTwelve days.\n\n## Costs\n\nFive.\n';
    expect(notePassages(text, 7)).toEqual([
      { title: 'Delivery', heading: '', text: 'Three days.', place: 3, atMs: 7 },
      { title: 'Delivery', heading: 'Abroad', text: 'Ten days.', place: 7, atMs: 7 },
      { title: 'Delivery', heading: 'Abroad › Islands', text: 'Twelve days.', place: 10, atMs: 7 },
      { title: 'Delivery', heading: 'Costs', text: 'Five.', place: 14, atMs: 7 },
    ]);
  });

  it('join short paragraphs and part long ones, none over the bound, with a sentence repeated', () => {
    const passages = notePassages(`# T\n\n${['a', 'b', 'c', 'd', 'e', 'f'].map((name) => paragraph(name, 8)).join('\n\n')}`, 0);
    expect(passages.length).toBeGreaterThan(1);
    for (const { text } of passages) expect(text.length).toBeLessThanOrEqual(1600);
    const last = passages[0]?.text.split('. ').at(-1) ?? '';
    expect(last).not.toBe('');
    expect(passages[1]?.text.startsWith(last)).toBe(true);
  });

  it('lose nothing of one endless paragraph, in any script', () => {
    for (const text of [paragraph('x', 200), '営業時間は九時から。'.repeat(400), 'x'.repeat(5000), '😀'.repeat(2000)]) {
      const passages = notePassages(text, 0);
      expect(passages.length).toBeGreaterThan(2);
      for (const piece of passages) {
        expect(piece.text.length).toBeLessThanOrEqual(1600);
        expect(piece.text.isWellFormed()).toBe(true);
      }
      const joined = passages.map((piece) => piece.text).join('');
      expect(joined.length).toBeGreaterThanOrEqual(text.trim().length * 0.98);
    }
  });

  it('leave front matter out and take no heading from code', () => {
    const passages = notePassages('---\ntags: x\n---\n# Setup\n\n```sh\n# not a heading\n\nls\n```\n', 0);
    expect(passages).toEqual([{ title: 'Setup', heading: '', text: '```sh\n# not a heading\n\nls\n```', place: 6, atMs: 0 }]);
  });

  it('are none of an empty note, and the title of one that has nothing else', () => {
    expect(notePassages(' \n\n', 0)).toEqual([]);
    expect(notePassages('# Only this', 0)).toMatchObject([{ title: 'Only this', text: 'Only this' }]);
  });

  it('are the words of a heading that has nothing below it', () => {
    const text = '# Phones\n\n## Family\n\n### Anna: 555 17\n### Ben: 555 18\n\n## Shop: 555 19\n\n## Notes\n\nCall in the evening.\n';
    expect(notePassages(text, 0)).toEqual([
      { title: 'Phones', heading: 'Family › Anna: 555 17', text: 'Anna: 555 17', place: 5, atMs: 0 },
      { title: 'Phones', heading: 'Family › Ben: 555 18', text: 'Ben: 555 18', place: 6, atMs: 0 },
      { title: 'Phones', heading: 'Shop: 555 19', text: 'Shop: 555 19', place: 8, atMs: 0 },
      { title: 'Phones', heading: 'Notes', text: 'Call in the evening.', place: 12, atMs: 0 },
    ]);
  });

  it('are as they were where another part of the note changes', () => {
    const before = notePassages('# N\n\n## A\n\none\n\n## B\n\ntwo\n', 1);
    const after = notePassages('# N\n\n## New\n\nzero\n\n## A\n\none\n\n## B\n\ntwo, changed\n', 2);
    const texts = before.map(embeddedText);
    expect(after.map(embeddedText).filter((text) => texts.includes(text))).toEqual(['N\nA\none']);
  });

  it.each([
    '# ' + '#'.repeat(1_000_000) + 'x',
    ' '.repeat(1_000_000),
    '`'.repeat(1_000_000),
    '---\n'.repeat(250_000),
    '# a\n'.repeat(250_000),
  ])('are built from any file content, without end or standstill', (text) => {
    for (const passage of notePassages(text, 0)) expect(passage.text.length).toBeLessThanOrEqual(1600);
  });

  it('are bounded for a file of data', () => {
    expect(notePassages(Array.from({ length: 5000 }, (_, index) => `## ${String(index)}\n\nrow`).join('\n\n'), 0)).toHaveLength(2000);
  });
});

describe('passages of a conversation', () => {
  const at = '2026-11-20T10:00:00.000Z';
  const base = { turnId: 't', at };
  const messages: SessionMessage[] = [
    { ...base, id: '1', role: 'user', text: 'When do you open?', sent: '<context>secret clock</context>' },
    { ...base, id: '2', role: 'assistant', text: '', toolCalls: [{ id: 'c', name: 'read', arguments: '{}' }] },
    { ...base, id: '3', role: 'tool', callId: 'c', name: 'read', output: 'tool output', isError: false },
    { ...base, id: '4', role: 'assistant', text: 'At nine.' },
    { ...base, id: '5', role: 'user', text: 'Thanks', sent: 'Thanks' },
  ];

  it('hold a question with its answer, by the number of the message, and nothing of tools or of what was added for the model', () => {
    const passages = sessionPassages({ title: 'Opening', summary: null }, messages);
    expect(passages).toEqual([
      { title: 'Opening', heading: '', text: 'user: When do you open?\n\nassistant: At nine.', place: 1, atMs: Date.parse(at) },
      { title: 'Opening', heading: '', text: 'user: Thanks', place: 5, atMs: Date.parse(at) },
    ]);
    expect(withoutSpeakers(passages[0]?.text ?? '')).toBe('When do you open?\n\nAt nine.');
  });

  it('have the summary among them', () => {
    const summary = { text: 'They asked for the hours.', messages: 40, updatedAt: at };
    expect(sessionPassages({ title: 'Opening', summary }, [])).toMatchObject([{ heading: 'Summary', text: 'They asked for the hours.' }]);
  });

  it('are of the latest part of an endless one', () => {
    const many = Array.from({ length: 2000 }, (_, index): SessionMessage => ({
      ...base,
      id: String(index),
      role: 'user',
      text: `${String(index)} ${'x'.repeat(1000)}`,
      sent: '',
    }));
    const passages = sessionPassages({ title: '', summary: null }, many);
    expect(passages.length).toBeLessThan(1000);
    expect(passages.at(-1)?.text).toContain('1999');
  });
});

describe('a snippet', () => {
  it('shows the part in which most of the question stands, cut at words', () => {
    const text = `${paragraph('a', 30)} The key of the cellar hangs in the office. ${paragraph('b', 30)}`;
    const snippet = cutSnippet(text, readQuestion('cellar key'));
    expect(snippet).toContain('The key of the cellar');
    expect(snippet).toMatch(/^….*…$/u);
    expect(snippet.length).toBeLessThanOrEqual(330);
  });

  it('is the whole of a short text, on one line', () => {
    expect(cutSnippet('one\n\ntwo', readQuestion('nothing'))).toBe('one two');
  });

  it('finds words through accents and splits no character', () => {
    expect(cutSnippet(`${'x '.repeat(300)}Ärmel ${'y '.repeat(300)}`, readQuestion('armel'))).toContain('Ärmel');
    expect(cutSnippet('😀'.repeat(1000), readQuestion('zz')).isWellFormed()).toBe(true);
  });
});
