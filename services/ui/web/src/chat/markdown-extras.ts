import { common, createLowlight } from 'lowlight';
import rehypeKatex from 'rehype-katex';
import remarkMath from 'remark-math';
import type { CodeHighlighterPlugin, HighlightToken, PluginConfig } from 'streamdown';

const lowlight = createLowlight(common);
/** Longer code is shown as it is: it is coloured anew with each word that comes. */
const CODE_MAX_CHARACTERS = 20_000;

type Node = ReturnType<typeof lowlight.highlight>['children'][number];

/** Colours of the page for what grammars name. */
const colours: Readonly<Record<string, string>> = {
  keyword: 'var(--primary)',
  built_in: 'var(--primary)',
  'selector-tag': 'var(--primary)',
  tag: 'var(--primary)',
  name: 'var(--primary)',
  string: 'var(--ok)',
  regexp: 'var(--ok)',
  addition: 'var(--ok)',
  number: 'var(--warn)',
  literal: 'var(--warn)',
  type: 'var(--warn)',
  attr: 'var(--warn)',
  attribute: 'var(--warn)',
  title: 'var(--danger)',
  deletion: 'var(--danger)',
  comment: 'var(--muted-foreground)',
  meta: 'var(--muted-foreground)',
};

function findColour(classes: unknown): string | undefined {
  const [first]: readonly unknown[] = Array.isArray(classes) ? classes : [];
  const name = String(first).replace(/^hljs-/u, '');
  return Object.hasOwn(colours, name) ? colours[name] : undefined;
}

/** Lines of coloured pieces. */
function toLines(nodes: readonly Node[]): HighlightToken[][] {
  const lines: HighlightToken[][] = [[]];
  const add = (text: string, color: string | undefined): void => {
    for (const [index, content] of text.split('\n').entries()) {
      if (index > 0) lines.push([]);
      if (content !== '') lines.at(-1)?.push({ content, ...(color !== undefined && { color }) });
    }
  };
  const walk = (node: Node, color: string | undefined): void => {
    if (node.type === 'text') add(node.value, color);
    if (node.type !== 'element') return;
    const own = findColour(node.properties['className']) ?? color;
    for (const child of node.children) walk(child, own);
  };
  for (const node of nodes) walk(node, undefined);
  return lines;
}

const code: CodeHighlighterPlugin = {
  name: 'shiki',
  type: 'code-highlighter',
  getSupportedLanguages: () => lowlight.listLanguages(),
  getThemes: () => ['github-light', 'github-dark'],
  supportsLanguage: (language) => lowlight.registered(language),
  highlight: ({ code: text, language }) => {
    const isColoured = text.length <= CODE_MAX_CHARACTERS && lowlight.registered(language);
    return { tokens: isColoured ? toLines(lowlight.highlight(language, text).children) : toLines([{ type: 'text', value: text }]) };
  },
};

/**
 * Code in colours, and formulas between two dollar signs as MathML, which browsers draw themselves: neither needs a
 * style sheet or a script that the page's policy refuses.
 */
export const markdownExtras: PluginConfig = {
  code,
  math: {
    name: 'katex',
    type: 'math',
    // One dollar sign is money.
    remarkPlugin: [remarkMath, { singleDollarTextMath: false }],
    rehypePlugin: [rehypeKatex, { output: 'mathml' }],
  },
};
