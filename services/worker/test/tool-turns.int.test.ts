import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setUpOnce } from '@concierge/testing/set-up';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { UploadRef } from '@concierge/contract';
import { z } from 'zod';
import { TestRunner, type PlayedTurn, type ToolUse } from './test-runner.ts';

const cs = { agent: 'cs', authority: 'cs', sender: 'bob' } as const;
const use = (name: string, input: Record<string, unknown> = {}): ToolUse => ({ name, input });
const outputs = ({ results }: PlayedTurn): string[] => results.map(({ output, isError }) => `${isError ? 'ERROR ' : ''}${output}`);
const SentBody = z.object({ messages: z.array(z.object({ role: z.string(), content: z.unknown() })) });
const base64 = (text: string): string => Buffer.from(text).toString('base64');

let fixture: TestRunner;

setUpOnce(async (stack) => {
  fixture = stack.use(await TestRunner.start());
});

async function upload(name: string, type: UploadRef['type'], text?: string): Promise<UploadRef> {
  return fixture.scope.uploads.save({ name, type, bytes: Buffer.from(`bytes of ${name}`), text });
}

describe('manage_skill in a turn', () => {
  const body = '# Refunds\n\n1. Ask for the order number.';

  it('makes a skill that the next turn has in its prompt and can load', async () => {
    const made = await fixture.play([
      use('manage_skill', { action: 'create', name: 'refunds', description: 'Money back: when asked', trigger: 'refund', body }),
      use('manage_skill', { action: 'write_file', name: 'refunds', file: 'references/limits.md', text: 'Up to 50 euros.' }),
      use('load_skill', { name: 'refunds' }),
      use('load_skill', { name: 'refunds', file: 'references/limits.md' }),
    ]);
    expect(outputs(made)).toEqual([
      'Created skills/refunds/SKILL.md. Agents know it from their next turn on.',
      "Added references/limits.md. Name it in the skill's procedure, or no agent will look into it.",
      `${body}\n\nFurther files of this skill, to be loaded with file: references/limits.md`,
      'Up to 50 euros.',
    ]);
    const next = await fixture.play([use('load_skill', { name: 'refunds' })], cs);
    expect(JSON.stringify(next.requests[0]?.body.messages[0])).toContain('Money back: when asked');
    expect(next.results[0]).toMatchObject({ isError: false });
  });

  it('changes it part by part, whole or by a passage, and brings back what was', async () => {
    await fixture.scope.skillEditor.create(
      'tea',
      '---\nname: tea\ndescription: Tea # hot\nmetadata:\n  trigger: brew\n  author: Ada\n---\nBoil.\n',
    );
    const changed = await fixture.play([
      use('manage_skill', { action: 'update', name: 'tea', description: 'Makes tea: green or black', trigger: 'make tea' }),
      use('manage_skill', { action: 'update', name: 'tea', find: 'Boil.', replace: 'Boil water.' }),
      use('manage_skill', { action: 'update', name: 'tea', body: 'Only pour.' }),
      use('manage_skill', { action: 'versions', name: 'tea' }),
    ]);
    expect(changed.results.every(({ isError }) => !isError)).toBe(true);
    expect((await fixture.scope.skills.load('tea')).skill).toMatchObject({ description: 'Makes tea: green or black', trigger: 'make tea' });
    expect((await fixture.scope.files.readText('skills/tea/SKILL.md')).text).toContain('author: Ada');
    const [, version = ''] = /^- (\S+): until/mu.exec(outputs(changed)[3] ?? '') ?? [];
    const restored = await fixture.play([
      use('manage_skill', { action: 'restore', name: 'tea', version }),
      use('load_skill', { name: 'tea' }),
      use('manage_skill', { action: 'delete', name: 'tea' }),
      use('load_skill', { name: 'tea' }),
    ]);
    expect(outputs(restored)).toEqual([
      'Restored SKILL.md of tea.',
      'Boil water.',
      expect.stringMatching(/^Deleted tea with all its files\. To bring it back: action restore, version \d{4}-/u),
      expect.stringMatching(/^ERROR There is no skill "tea"/u),
    ]);
  });

  it('explains what is wrong in words that lead to what is right', async () => {
    const tried = await fixture.play([
      use('manage_skill', { action: 'create', name: 'Refund Request', description: 'x', body: 'y' }),
      use('manage_skill', { action: 'create', name: 'x-1', description: '', body: 'y' }),
      use('manage_skill', { action: 'create', name: 'x-1', body: 'y' }),
      use('manage_skill', { action: 'create', name: 'x-1', content: 'no front matter', body: 'y' }),
      use('manage_skill', { action: 'create', name: 'take-notes', description: 'x', body: 'y' }),
      use('manage_skill', { action: 'update', name: 'take-notes' }),
      use('manage_skill', { action: 'update', name: 'take-notes', find: 'not in it', replace: '' }),
      use('manage_skill', { action: 'update', name: 'take-notes', find: 'name: take-notes', replace: 'name: other' }),
      use('manage_skill', { action: 'delete' }),
      use('manage_skill', { action: 'rename', name: 'x' }),
      use('manage_skill', { action: 'write_file', name: 'take-notes', file: '../../tenant.json', text: '{}' }),
      use('manage_skill', { action: 'remove_file', name: 'take-notes', file: 'nothing.md' }),
    ]);
    expect(tried.results.every(({ isError }) => isError)).toBe(true);
    const wanted = [
      'must be lower-case letters',
      'description must be text of 1 to 1024 characters',
      'needs description and body',
      'Give either content',
      'There is a skill take-notes already. Use update',
      'needs content, or description',
      'The passage is not in SKILL.md',
      'the name is other, the folder is take-notes',
      'needs name',
      'action',
      'must not contain . or ..',
      'has no file nothing.md',
    ];
    expect(outputs(tried)).toEqual(wanted.map((part) => expect.stringContaining(part)));
    expect(outputs(tried)[1]).toContain('SKILL.md looks like this:\n---\nname: refund-request');
  });

  it('lists those that cannot be used, with the reason', async () => {
    await fixture.scope.files.writeText('skills/broken/SKILL.md', '---\nname: broken\n---\n');
    const [list] = outputs(await fixture.play([use('manage_skill', { action: 'list' })]));
    expect(list).toContain('- take-notes: ');
    expect(list).toContain('Cannot be used until they are put right:\n- skills/broken/SKILL.md: front matter: description must be text');
    await fixture.scope.files.removeFolder('skills/broken');
  });

  it('is not for cs, who cannot read what was taken out of a skill either', async () => {
    await fixture.scope.skillEditor.create('prices', '---\nname: prices\ndescription: Prices\n---\nWe buy at 3.\n');
    await fixture.scope.skillEditor.update('prices', (text) => text.replace('We buy at 3.', 'We sell at 5.'));
    const [version] = await fixture.scope.skillEditor.versions('prices');
    const path = `skills/.versions/prices/${version?.id ?? ''}/SKILL.md`;
    const tried = await fixture.play(
      [
        use('manage_skill', { action: 'list' }),
        use('read', { path }),
        use('load_skill', { name: '.versions', file: `prices/${version?.id ?? ''}/SKILL.md` }),
        use('render_template', { name: `../${path}` }),
      ],
      cs,
    );
    expect(tried.results.map(({ isError }) => isError)).toEqual([true, true, true, true]);
    expect(JSON.stringify(tried.session)).not.toContain('We buy at 3');
    expect(outputs(await fixture.play([use('read', { path })]))[0]).toContain('We buy at 3.');
  });
});

describe('load_skill in a turn', () => {
  it('pages what is long, and names what is no text', async () => {
    const lines = Array.from({ length: 1500 }, (_, index) => `line ${String(index + 1)}`).join('\n');
    await fixture.scope.skillEditor.create('long', `---\nname: long\ndescription: Long\n---\n${lines}\n`);
    const logo = join(fixture.scope.root, 'skills/long/assets/logo.png');
    await mkdir(dirname(logo), { recursive: true });
    await writeFile(logo, Buffer.from([0x89, 0x50, 0xff, 0]));
    const uses = [
      use('load_skill', { name: 'long' }),
      use('load_skill', { name: 'long', offset: 1499 }),
      use('load_skill', { name: 'long', file: 'assets/logo.png' }),
      use('load_skill', { name: 'long', offset: 9999 }),
    ];
    const [first, second, binary, behind] = outputs(await fixture.play(uses));
    expect(first).toMatch(
      /^1\tline 1\n[^]*\[lines 1 to 1000 of 1500; continue with offset 1001\]\n\nFurther files of this skill.*assets\/logo\.png$/u,
    );
    expect(second).toMatch(/^1499\tline 1499\n1500\tline 1500\n\nFurther/u);
    expect(binary).toBe(
      'ERROR assets/logo.png of the skill long is not text and cannot be shown. It lies at skills/long/assets/logo.png, for use by its path in a command.',
    );
    expect(behind).toBe('ERROR long has 1500 lines; there is none at offset 9999.');
    expect(outputs(await fixture.play(uses, cs))[2]).toBe('ERROR assets/logo.png of the skill long is not text and cannot be shown.');
  });
});

describe('view_attachment in a turn', () => {
  const shown = (played: PlayedTurn, request: number): unknown[] => {
    const { messages } = SentBody.parse(played.requests[request]?.raw);
    return messages.slice(1).map(({ role, content }) => (role === 'user' ? content : role));
  };

  it('shows an image to the model right after the results, and in later turns with the same bytes', async () => {
    const image = await upload('cat.png', 'image/png');
    const played = await fixture.play([use('view_attachment', { id: image.id }), use('status')]);
    expect(outputs(played)[0]).toBe(`${image.id}  "cat.png"  image/png, 16 bytes: the image is shown to you in the message after this.`);
    const parts = [
      { type: 'text', text: `[Shown by view_attachment; the user did not send it: "cat.png" (${image.id})]` },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64('bytes of cat.png')}` } },
    ];
    expect(shown(played, 1)).toEqual([expect.any(String), 'assistant', 'tool', parts]);
    expect(shown(played, 2)).toEqual([expect.any(String), 'assistant', 'tool', parts, 'assistant', 'tool']);
    expect(JSON.stringify(played.session)).not.toContain(base64('bytes of cat.png'));
    expect(played.results[0]).toMatchObject({ attachments: [image] });
    const next = await fixture.play([], { sessionId: played.session.id });
    const before = JSON.stringify(shown(played, 2));
    expect(JSON.stringify(shown(next, 0)).startsWith(before.slice(0, -1))).toBe(true);
  });

  it('shows it to the attempt that goes on after a crash', async () => {
    const image = await upload('dog.png', 'image/png');
    const played = await fixture.play([use('view_attachment', { id: image.id })]);
    const result = played.steps.findIndex(({ kind }) => kind === 'result');
    const steps = played.steps.slice(0, result + 1).map((step) => structuredClone(step));
    const resumed = await fixture.resume(played.session, { steps, uses: [] });
    expect(resumed.requests).toHaveLength(1);
    expect(shown(resumed, 0)).toEqual(shown(played, 1));
    expect(JSON.stringify(shown(resumed, 0))).toContain(base64('bytes of dog.png'));
  });

  it('shows several calls of one reply after the last of their results, and an image once', async () => {
    const [one, two] = [await upload('1.png', 'image/png'), await upload('2.png', 'image/png')];
    const played = await fixture.play(
      [use('view_attachment', { id: two.id }), use('view_attachment', { id: one.id }), use('view_attachment', { id: two.id })],
      { attachments: [one] },
    );
    const last = JSON.stringify(shown(played, 3));
    expect(last.split(base64('bytes of 1.png'))).toHaveLength(2);
    expect(last.split(base64('bytes of 2.png'))).toHaveLength(2);
    expect(last).toContain(`is shown above`);
  });

  it('shows the newest ten and no more', async () => {
    const images: UploadRef[] = [];
    for (let index = 0; index < 11; index += 1) images.push(await upload(`${String(index)}.png`, 'image/png'));
    const played = await fixture.play(images.map(({ id }) => use('view_attachment', { id })));
    const last = JSON.stringify(shown(played, 11));
    expect(last.match(/"image_url":\{/gu)).toHaveLength(10);
    expect(last).toContain(`[The image \\"0.png\\" (${images[0]?.id ?? ''}) is not shown.]`);
  });

  it('reports it to a model that sees no images', async () => {
    const image = await upload('cat.png', 'image/png');
    const played = await fixture.play([use('view_attachment', { id: image.id })], {}, 'blind');
    expect(outputs(played)[0]).toContain('the model of this conversation cannot see images');
    expect(played.results[0]).not.toHaveProperty('attachments');
    expect(JSON.stringify(shown(played, 1))).not.toContain('image_url');
  });

  it('gives the text of files page by page, with no line cut', async () => {
    const text = `${'word '.repeat(1000)}\n${'second page\n'.repeat(1200)}`;
    const pdf = await upload('a.pdf', 'application/pdf', text);
    const scan = await upload('scan.pdf', 'application/pdf', '  ');
    const [first, second, empty] = outputs(
      await fixture.play([
        use('view_attachment', { id: pdf.id }),
        use('view_attachment', { id: pdf.id, offset: 1001, limit: 2 }),
        use('view_attachment', { id: scan.id }),
      ]),
    );
    expect(first).toContain('continue with offset 1001]');
    expect(first).not.toContain('line cut');
    expect((first?.match(/word/gu) ?? []).length).toBe(1000);
    expect(second).toMatch(/"a\.pdf" {2}application\/pdf, \d+ bytes\n1001\tsecond page\n1002\tsecond page\n\[lines 1001 to 1002/u);
    expect(empty).toContain('no text could be read');
  });

  it('lists what is attached, this turn’s own and earlier ones', async () => {
    const [one, two] = [await upload('one.txt', 'text/plain', 'one'), await upload('two.txt', 'text/plain', 'two')];
    const first = await fixture.play([use('view_attachment')], { attachments: [one] });
    expect(outputs(first)[0]).toBe(`Attached in this conversation, oldest first:\n${one.id}  "one.txt"  text/plain, 16 bytes`);
    const second = await fixture.play([use('view_attachment')], { sessionId: first.session.id, attachments: [two, one] });
    expect(outputs(second)[0]).toMatch(/one\.txt[^]*two\.txt/u);
    expect(outputs(second)[0]?.match(/one\.txt/gu)).toHaveLength(1);
    expect(outputs(await fixture.play([use('view_attachment')]))[0]).toBe('Nothing is attached in this conversation.');
  });

  it('gives cs what is attached in its own conversation and nothing else, not even that it exists', async () => {
    const [mine, owners] = [await upload('mine.txt', 'text/plain', 'mine'), await upload('owners.txt', 'text/plain', 'of the owner')];
    const unknown = `u_${'0'.repeat(32)}`;
    const uses = [mine.id, owners.id, unknown, '../x'].map((id) => use('view_attachment', { id }));
    const first = await fixture.play(uses, { ...cs, attachments: [mine] });
    const [seen, foreign, missing, odd] = outputs(first);
    expect(seen).toContain('1\tmine');
    expect(foreign?.replace(owners.id, '')).toBe(missing?.replace(unknown, ''));
    expect(odd).toMatch(/^ERROR There is no attachment/u);
    expect(JSON.stringify(first.session)).not.toContain('of the owner');
    expect(outputs(await fixture.play([use('view_attachment', { id: mine.id })], { ...cs, sessionId: first.session.id }))[0]).toContain(
      '1\tmine',
    );
    expect(outputs(await fixture.play([use('view_attachment', { id: mine.id })], { ...cs, sender: 'eve' }))[0]).toContain('ERROR');
    expect(outputs(await fixture.play([use('view_attachment', { id: mine.id })]))[0]).toContain('1\tmine');
  });
});

describe('render_template in a turn', () => {
  beforeAll(async () => {
    const head =
      '---\ndescription: An offer\nvariables:\n  - {name: who, description: The customer}\n  - {name: total, type: number}\n---\n';
    await fixture.scope.files.writeText('templates/letters/offer.md', `${head}Dear {{ who }}, {{ total }}.\n`);
    await fixture.scope.files.writeText('templates/page.html', '---\nvariables: [{name: who}]\n---\n<p>{{ who }}</p>\n');
    await fixture.scope.files.writeText('templates/bad.txt', '---\nvariables: 7\n---\n');
  });

  it.each([
    ['admin', {}],
    ['cs', cs],
  ])('fills in what the tenant has written, for %s', async (_, turn) => {
    const played = await fixture.play(
      [
        use('render_template', { name: 'letters/offer.md', variables: { who: '<Ada>', total: 5 } }),
        use('render_template', { name: 'templates/letters/offer', variables: { who: 'Ada', total: 5 } }),
        use('render_template', { name: 'page', variables: { who: '<Ada>' } }),
      ],
      turn,
    );
    expect(outputs(played)).toEqual(['Dear <Ada>, 5.\n', 'Dear Ada, 5.\n', '<p>&lt;Ada&gt;</p>\n']);
  });

  it.each([
    ['admin', {}],
    ['cs', cs],
  ])('refuses what does not fit and names what would, for %s', async (_, turn) => {
    const uses = [
      use('render_template', { name: 'offer', variables: {} }),
      use('render_template', { name: 'letters/offer', variables: { total: '5', wo: 'x' } }),
      use('render_template', { name: '../MEMORY.md' }),
      use('render_template', { name: 'bad.txt' }),
      use('render_template', { name: 'letters' }),
      use('render_template', { name: 'letters/offer', variables: 'Ada' }),
    ];
    const [unknown = '', wrong = '', outside = '', bad = '', folder = '', noObject = ''] = outputs(await fixture.play(uses, turn));
    expect(unknown).toMatch(/^ERROR There is no template "offer"\. There are:\n/u);
    expect(unknown).toContain('- letters/offer.md (who, total): An offer');
    expect(unknown).toContain('- follow-up.md (contact.name, subject, steps, sender): A short message');
    expect(unknown).toContain('- bad.txt, which cannot be used');
    expect(wrong).toContain(
      '- who is missing: who (string): The customer\n- total must be a number, without quotes, not a string\n- wo is unknown',
    );
    expect(outside).toMatch(/^ERROR/u);
    expect(bad).toContain('ERROR templates/bad.txt was not rendered');
    expect(folder).toContain('There is no template "letters"');
    expect(noObject).toContain('variables');
  });
});

describe('status in a turn', () => {
  it('shows the owner what the workspace has used today, and a customer nothing of cost', async () => {
    await fixture.play([]);
    const [own = ''] = outputs(await fixture.play([use('status')]));
    expect(own).toMatch(/Workspace today \(UTC\), turns that have ended: \d+ model calls, \d+ input and \d+ output tokens/u);
    expect(own).toContain('Model: scripted/m');
    const [theirs = ''] = outputs(await fixture.play([use('status')], cs));
    expect(theirs).toMatch(
      /^Time: .*\nAgent: cs, on channel web\nSession: \w+, \d+ messages\nContext: about \d+ of \d+ tokens \(\d+ %\)$/u,
    );
  });
});

describe('files in a turn', () => {
  it('are written, changed, found and read by admin, and for cs only read where it may', async () => {
    const uses = [
      use('write', { path: 'templates/plan.md', content: 'one\r\ntwo\r\n' }),
      use('edit', { path: 'templates/plan.md', find: 'one\ntwo', replace: 'one\nthree' }),
      use('search_files', { query: 'THREE', globs: ['*.md'] }),
      use('search_files', { query: 'three', globs: ['plan.*'], context: 1 }),
      use('list_files', { path: 'templates' }),
      use('read', { path: 'templates/plan.md', offset: 2 }),
    ];
    const owner = await fixture.play(uses);
    expect(outputs(owner).slice(1)).toEqual([
      'Changed templates/plan.md:\n@@ line 1 @@\n-one\n-two\n+one\n+three',
      expect.stringMatching(/^Nothing found in \d+ files\.$/u),
      'templates/plan.md-1- one\ntemplates/plan.md:2: three',
      expect.stringContaining('templates/plan.md (12 bytes)'),
      '2\tthree\n[lines end with CRLF]',
    ]);
    const customer = await fixture.play(uses, cs);
    expect(customer.results.map(({ isError }) => isError)).toEqual([true, true, true, true, true, false]);
  });
});

describe('requests to the model', () => {
  const sent = ({ requests }: PlayedTurn) => requests.map(({ raw }) => SentBody.parse(raw).messages);
  const listTools = ({ requests }: PlayedTurn) => requests.flatMap(({ body }) => body.tools ?? []).map((tool) => tool.function.name);

  it('carry an edit of a context file, and other tools, from the next turn of the conversation on', async () => {
    const sessionId = fixture.newSessionId();
    const soul = async (text: string): Promise<void> => writeFile(join(fixture.scope.root, 'SOUL.md'), text);
    await soul('Answer in rhyme.');
    const before = await fixture.play([], { sessionId });
    await soul('Answer in prose.');
    await fixture.scope.updateSettings({ agents: { admin: { tools: ['read'] } } });
    const after = await fixture.play([], { sessionId });
    await fixture.scope.updateSettings({ agents: null });
    const [[prompt, asked] = []] = sent(before);
    const [[changed, kept] = []] = sent(after);
    expect(prompt?.content).toContain('Answer in rhyme.');
    expect(listTools(before)).toEqual(expect.arrayContaining(['read', 'write', 'bash']));
    expect(changed?.content).toContain('Answer in prose.');
    expect(changed?.content).not.toContain('rhyme');
    expect(listTools(after)).toEqual(['read']);
    expect(kept).toEqual(asked);
  });

  it('go on from call to call of a turn, with what came since', async () => {
    const [first = [], second = [], third = []] = sent(await fixture.play([use('status'), use('list_files')]));
    expect(first.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(second.slice(0, first.length)).toEqual(first);
    expect(third.slice(0, second.length)).toEqual(second);
    expect(third.slice(first.length).map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant', 'tool']);
  });
});
