// `node infra/check/catalog-texts.mjs [folder]`: fails when a page of the console has a text of its own. Texts stand in
// the catalogs, in every language; a literal would be shown in one.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseSync } from '@swc/core';

const sources = 'services/ui/web/src/**/*.tsx';
/** Attributes whose value is read by someone. */
const shownAttributes = new Set(['alt', 'aria-description', 'aria-label', 'help', 'hint', 'label', 'placeholder', 'text', 'title']);
/** Elements whose content is no language: commands, keys, names for programs. */
const codeElements = new Set(['code', 'kbd', 'pre', 'style', 'script']);
/** Names that are the same in every language. */
const names = new Set(['Concierge', 'OPS_TOKEN', 'SOUL.md', 'UTC', 'Web', 'admin', 'ck_live_…', 'cs', 'provider_error']);
/** Markup that is shown to be copied. */
const markup = /[<>=]/u;
const words = /\p{L}{2,}/u;

const isText = (text) => words.test(text) && !markup.test(text) && !names.has(text.trim());

/** The texts of a file that stand in what it shows, with the place of each. */
function findTexts(text) {
  const { body, span } = parseSync(text, { syntax: 'typescript', tsx: true, target: 'esnext' });
  const found = [];
  // Places are counted in bytes, over all that was parsed.
  const bytes = Buffer.from(text);
  const report = (said, at) => {
    if (isText(said))
      found.push({
        text: said.trim(),
        line: bytes
          .subarray(0, at - span.start)
          .toString()
          .split('\n').length,
      });
  };
  /** A value that is shown: a literal, or one of a few. */
  const show = (node) => {
    if (node === null || node === undefined) return;
    if (node.type === 'JSXExpressionContainer' || node.type === 'ParenthesisExpression') show(node.expression);
    else if (node.type === 'StringLiteral') report(node.value, node.span.start);
    else if (node.type === 'TemplateLiteral') for (const { raw } of node.quasis) report(raw, node.span.start);
    else if (node.type === 'ConditionalExpression') [node.consequent, node.alternate].forEach(show);
    else if (node.type === 'BinaryExpression' && ['&&', '||', '??'].includes(node.operator)) [node.left, node.right].forEach(show);
  };
  const visit = (node, isCode) => {
    if (Array.isArray(node)) return node.forEach((one) => visit(one, isCode));
    if (typeof node !== 'object' || node === null) return;
    if (node.type === 'JSXText' && !isCode) report(node.value, node.span.start);
    for (const value of listShown(node, isCode)) show(value);
    const isInCode = isCode || (node.type === 'JSXElement' && codeElements.has(node.opening.name.value));
    for (const [name, child] of Object.entries(node)) if (name !== 'span') visit(child, isInCode);
  };
  visit(body, false);
  return found;
}

/** What a node shows of its own, beside its text. */
function listShown({ type, name, value, children }, isCode) {
  if (type === 'JSXAttribute') return shownAttributes.has(toName(name)) ? [value] : [];
  return type === 'JSXElement' && !isCode ? children.filter((child) => child.type === 'JSXExpressionContainer') : [];
}

const toName = ({ type, value, namespace, name }) => (type === 'JSXNamespacedName' ? `${namespace.value}:${name.value}` : value);

/** The findings over a tree, one line each. */
export function checkTexts(root) {
  return globSync(sources, { cwd: root })
    .toSorted()
    .flatMap((path) =>
      findTexts(readFileSync(join(root, path), 'utf8')).map(({ text, line }) => `${path}:${line}: “${text}” is in no catalog`),
    );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const findings = checkTexts(process.argv[2] ?? '.');
  for (const line of findings) process.stdout.write(`${line}\n`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
