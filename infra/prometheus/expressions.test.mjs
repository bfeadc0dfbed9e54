import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { figures } from '../../packages/runtime/src/metrics/figures.ts';

const read = (...path) => readFileSync(join(root, ...path), 'utf8');
const rulesText = read('infra', 'prometheus', 'alerts.yml');
const boardsFolder = join(root, 'infra', 'grafana', 'dashboards');
const boards = readdirSync(boardsFolder).map((name) => ({ name, board: JSON.parse(read('infra', 'grafana', 'dashboards', name)) }));

/** One rule: its name, its expression on one line, the path of its runbook. */
const rules = rulesText
  .split('- alert: ')
  .slice(1)
  .map((text) => ({
    name: /^\w+/u.exec(text)[0],
    expr: /expr: (?:>-\n)?(?<expr>[\s\S]*?)\n +(?:for|labels):/u.exec(text).groups.expr.replaceAll(/\s+/gu, ' ').trim(),
    severity: /severity: (\w+)/u.exec(text)[1],
    runbook: /runbook_url: (\S+)/u.exec(text)?.[1],
  }));
const expressions = [
  ...rules.map(({ name, expr }) => ({ where: name, expr })),
  ...boards.flatMap(({ name, board }) =>
    board.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: `${name}: ${title}`, expr }))),
  ),
];

/** Labels that Prometheus and the registries of the services add. */
const added = ['service', 'instance', 'job'];
/** Of Prometheus and Node; those of Node have few labels, and none here names one. */
const foreign = /^(?:up|nodejs_\w+|process_\w+)$/u;

/** The figure behind a series, and the labels that it has. */
function findFigure(series) {
  const base = series.replace(/_(?:bucket|sum|count)$/u, '');
  const name = figures[series] === undefined && figures[base]?.kind === 'histogram' ? base : series;
  const figure = figures[name];
  if (figure === undefined) return undefined;
  return { figure, labels: [...Object.keys(figure.labels ?? {}), ...added, ...(series.endsWith('_bucket') ? ['le'] : [])] };
}

/** What is wrong with what stands in the braces. */
function findMatcherFaults(series, matchers, { figure, labels }) {
  return [...matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/gu)].flatMap(([, label, , values]) => {
    if (!labels.includes(label)) return [`${series} has no label ${label}`];
    const declared = figure.labels?.[label] ?? values.split('|');
    const unknown = values.split('|').filter((value) => !declared.includes(value));
    return unknown.map((value) => `${series} has no ${label}="${value}"`);
  });
}

/** What is wrong with an expression, as sentences. */
function findFaults(expr) {
  const selectors = [...expr.matchAll(/\b(?<series>concierge_\w+|up|nodejs_\w+|process_\w+)(?:\{(?<matchers>[^}]*)\})?/gu)].map(
    ({ groups }) => groups,
  );
  if (selectors.length === 0) return ['names no figure'];
  const faults = [];
  const known = new Set(added);
  for (const { series, matchers = '' } of selectors) {
    if (foreign.test(series)) continue;
    const found = findFigure(series);
    if (found === undefined) {
      faults.push(`${series} is not declared`);
      continue;
    }
    for (const label of found.labels) known.add(label);
    faults.push(...findMatcherFaults(series, matchers, found));
  }
  for (const [, grouped] of expr.matchAll(/\bby \(([^)]*)\)/gu))
    for (const label of grouped.split(',').map((each) => each.trim()))
      if (!known.has(label)) faults.push(`${label} is no label of its figures`);
  return faults;
}

describe('rules and boards', () => {
  it('name declared figures, labels and values in every expression', () => {
    expect(expressions.length).toBeGreaterThan(60);
    expect(expressions.flatMap(({ where, expr }) => findFaults(expr).map((fault) => `${where}: ${fault}`))).toEqual([]);
  });

  it('would be told of a figure, a label and a value that there are not', () => {
    expect(findFaults('sum(rate(concierge_turn_total[5m]))')).toEqual(['concierge_turn_total is not declared']);
    expect(findFaults('sum by (tenant) (concierge_turns_running)')).toEqual(['tenant is no label of its figures']);
    expect(findFaults('concierge_waiting_turns{reason="nothing"}')).toEqual(['concierge_waiting_turns has no reason="nothing"']);
    expect(findFaults('concierge_turns_running{agent="cs"}')).toEqual(['concierge_turns_running has no label agent']);
  });

  it('use every figure that is declared', () => {
    const all = expressions.map(({ expr }) => expr).join('\n');
    expect(Object.keys(figures).filter((name) => !all.includes(name))).toEqual([]);
  });

  it('count from the start where an alert asks for an increase', () => {
    const late = rules.flatMap(({ name, expr }) =>
      [...expr.matchAll(/increase\((?<series>\w+)/gu)]
        .map(({ groups }) => findFigure(groups.series))
        .filter(({ figure }) => Object.entries(figure.labels ?? {}).some(([label, values]) => values === null && !isKnownAtStart(label)))
        .map(() => name),
    );
    expect(late).toEqual([]);
  });
});

/** The worker names the models and providers of its configuration. */
function isKnownAtStart(label) {
  return label === 'model' || label === 'provider';
}

describe('every alert', () => {
  it('has a severity, and a runbook of its name that the list has', () => {
    const list = read('docs', 'runbooks', 'README.md');
    for (const { name, severity, runbook } of rules) {
      const file = `${name.replaceAll(/(?<!^)[A-Z]/gu, (letter) => `-${letter}`).toLowerCase()}.md`;
      expect(runbook).toBe(`docs/runbooks/${file}`);
      expect(existsSync(join(root, runbook))).toBe(true);
      expect(read('docs', 'runbooks', file)).toMatch(
        new RegExp(`^# ${name}\\n[\\s\\S]*## Look first\\n[\\s\\S]*## It is over when\\n`, 'u'),
      );
      expect(list).toContain(`| [${name}](${file}) | ${severity} |`);
    }
    const pages = readdirSync(join(root, 'docs', 'runbooks')).filter((name) => name !== 'README.md');
    expect(pages.toSorted()).toEqual(rules.map(({ runbook }) => basename(runbook)).toSorted());
  });
});

describe('the boards', () => {
  it('have panels of their own ids, with the data source that is provisioned', () => {
    expect(boards.map(({ name }) => name)).toEqual(['channels.json', 'cost.json', 'queues.json', 'service.json']);
    for (const { board } of boards) {
      expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
      expect(board.panels.every(({ datasource }) => datasource.uid === 'prometheus')).toBe(true);
    }
    expect(read('infra', 'grafana', 'provisioning', 'datasources', 'prometheus.yml')).toMatch(/uid: prometheus$/mu);
  });
});
