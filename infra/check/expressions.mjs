// Finds regular expressions in sources, and asks recheck whether any of them can take time in the square of its text,
// or worse.
import { parseSync } from '@swc/core';
import { checkSync } from 'recheck';

/*
 * An expression that is bounded some other way has a line comment with the reason, on its line or right above it, that
 * begins with
 * `bounded-expression:`, as in "bounded-expression: of 255 characters, which the schema sees to".
 * One that is built at run time cannot be looked at and always needs one.
 */
const EXEMPTION = /\/\/ bounded-expression: \S/u;
/**
 * recheck runs without time limits and with one seed, so that a verdict is the same on every machine. The number of
 * trials is limited.
 */
const settings = { randomSeed: 1, timeout: null, attackTimeout: null, incubationTimeout: null, seedingTimeout: null };

/**
 * Returns line and verdict of each finding in one source. `verdicts` caches verdicts by the text of the expression.
 */
export function findingsIn(source, { isJsx = false, verdicts = new Map() } = {}) {
  const lines = source.split('\n');
  const findings = [];
  const used = new Set();
  for (const { text, flags, at } of expressionsIn(source, isJsx)) {
    const verdict = text === undefined ? 'is built at run time' : verdictOf(text, flags, verdicts);
    if (verdict === null) continue;
    const line = lineOf(source, at);
    const exempting = exemptionFor(lines, line);
    if (exempting === undefined) findings.push({ line, text, verdict });
    else used.add(exempting);
  }
  for (const [index, line] of lines.entries()) {
    if (EXEMPTION.test(line) && !used.has(index + 1)) findings.push({ line: index + 1, verdict: 'exempts nothing any more' });
  }
  return findings;
}

/** null: in proportion to the text. */
function verdictOf(text, flags, verdicts) {
  const key = `/${text}/${flags}`;
  const known = verdicts.get(key);
  if (known !== undefined) return known;
  // What it does not know of `v` (set operations, properties of strings) it refuses, and that counts as a finding.
  const { status, complexity, attack, error } = checkSync(text, flags.replace('v', 'u'), settings);
  const verdict =
    status === 'safe' ? null : status === 'vulnerable' ? `${complexity.summary}: ${attack.pattern}` : `not known (${error.kind})`;
  verdicts.set(key, verdict);
  return verdict;
}

/**
 * Every literal, and every call of RegExp, in the order of the source; `text` is undefined for one that is no constant.
 */
function expressionsIn(source, isJsx) {
  const found = [];
  const from = new Map();
  const add = (needle, expression) => {
    const at = source.indexOf(needle, from.get(needle) ?? 0);
    from.set(needle, at + 1);
    found.push({ ...expression, at });
  };
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node !== 'object' || node === null) return;
    if (node.type === 'RegExpLiteral') add(`/${node.pattern}/${node.flags}`, { text: node.pattern, flags: node.flags });
    else if (node.callee?.value === 'RegExp') add('RegExp(', builtBy(node.arguments ?? []));
    for (const [name, child] of Object.entries(node)) if (name !== 'span') visit(child);
  };
  visit(parseSync(source, { syntax: 'typescript', tsx: isJsx, target: 'esnext' }).body);
  return found;
}

/** Returns text and flags of a RegExp call; empty when they are not constants. */
function builtBy(given) {
  const [text, flags = ''] = given.map(({ expression }) => constantOf(expression) ?? null);
  return text === null || flags === null ? {} : { text, flags };
}

function constantOf({ type, value, quasis, expressions, tag, template }) {
  if (type === 'StringLiteral') return value;
  if (type === 'TemplateLiteral' && expressions.length === 0) return quasis[0].cooked;
  const isRaw = type === 'TaggedTemplateExpression' && tag.object?.value === 'String' && tag.property?.value === 'raw';
  return isRaw && template.expressions.length === 0 ? template.quasis[0].raw : undefined;
}

function lineOf(source, at) {
  return source.slice(0, Math.max(0, at)).split('\n').length;
}

/** The line of the comment: this one, or one of the comments right above it. */
function exemptionFor(lines, line) {
  if (EXEMPTION.test(lines[line - 1])) return line;
  for (let above = line - 1; above > 0 && lines[above - 1].trim().startsWith('//'); above -= 1) {
    if (EXEMPTION.test(lines[above - 1])) return above;
  }
  return undefined;
}
