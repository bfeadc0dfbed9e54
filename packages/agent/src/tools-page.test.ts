import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { allTools } from './tools/all-tools.ts';
import { defineTool } from './tools/tool.ts';
import { toolsPage } from './tools-page.ts';

const committed = new URL('../../../docs/tools.md', import.meta.url);

describe('docs/tools.md', () => {
  it('matches the registry: `npm run docs` writes it anew', async () => {
    expect(await readFile(committed, 'utf8')).toBe(toolsPage(allTools));
  });
});

describe('the page of tools', () => {
  const tool = defineTool({
    name: 'read',
    domain: 'files',
    cs: 'narrow',
    description: 'Reads.\nA second line.',
    narrowDescription: 'Reads less.',
    schema: z.strictObject({
      path: z.string().min(1).max(20).describe('A path | or two'),
      how: z.enum(['fast', 'slow']).optional(),
      lines: z.array(z.int().min(1)).max(3).optional(),
      at: z.union([z.string(), z.number()]).optional(),
    }),
    sideEffect: 'writes',
    timeoutMs: 5000,
    run: () => Promise.resolve(''),
  });
  const page = toolsPage([tool]);

  it('states who has a tool, what it changes and how long it may take', () => {
    expect(page).toContain('| [`read`](#read) | files | in a narrower form | yes; never run twice |');
    expect(page).toContain('cs: in a narrower form. Side effects: yes; never run twice. Ends after 5 s at the latest.');
    expect(page).toContain('> Reads.\n> A second line.');
    expect(page).toContain('For `cs`:\n\n> Reads less.');
  });

  it('has a row for each argument, with its limits', () => {
    expect(page).toContain('| `path` | text | yes | 1 to 20 characters | A path \\| or two |');
    expect(page).toContain('| `how` | `fast`, `slow` |  |  |  |');
    expect(page).toContain('| `lines` | list of integer |  | at most 3 items |  |');
    expect(page).toContain('| `at` | text or number |  |  |  |');
  });

  it('leaves out domains without tools', () => {
    expect(page).not.toContain('## Web');
  });
});
