import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { figures, type Figure } from './figures.ts';
import { metricsPage } from './metrics-page.ts';
import { Figures, listSeries } from './open-figure.ts';

const all: readonly (readonly [string, Figure])[] = Object.entries(figures);

describe('docs/metrics.md', () => {
  it('matches the declarations: `npm run docs` writes it anew', async () => {
    const page = await readFile(new URL('../../../../docs/metrics.md', import.meta.url), 'utf8');
    expect(page).toBe(metricsPage());
  });
});

describe('the declared figures', () => {
  it('are named after their kind and unit', () => {
    for (const [name, { kind }] of all) {
      expect(name).toMatch(/^concierge_[a-z_]+$/u);
      expect(name.endsWith('_total')).toBe(kind === 'counter');
      expect(kind !== 'histogram' || name.endsWith('_seconds')).toBe(true);
    }
  });

  it('have no label of a tenant or a session, and few series', () => {
    const labels = new Set(all.flatMap(([, figure]) => Object.keys(figure.labels ?? {})));
    expect([...labels].filter((label) => /tenant|account|session|turn|key|sender|contact/u.test(label))).toEqual([]);
    for (const [, figure] of all) expect(listSeries(figure).length).toBeLessThanOrEqual(250);
  });
});

describe('an opened figure', () => {
  it('exists with every combination of its values, at zero', async () => {
    const registry = new Registry();
    const opened = new Figures(registry);
    opened.counter('concierge_webhook_requests_total');
    opened.gauge('concierge_waiting_turns');
    opened.histogram('concierge_turn_wait_seconds');
    const text = await registry.metrics();
    expect(text.match(/^concierge_webhook_requests_total\{channel="[a-z_]+",outcome="[a-z]+"\} 0$/gmu)).toHaveLength(15);
    expect(text).toContain('concierge_waiting_turns{reason="no_worker"} 0');
    expect(text).toContain('concierge_turn_wait_seconds_count 0');
  });

  it('has the values that the configuration adds', async () => {
    const registry = new Registry();
    const opened = new Figures(registry);
    opened.counter('concierge_model_calls_total', { model: ['a/b', 'other'] });
    expect(await registry.metrics()).toContain('concierge_model_calls_total{model="a/b"} 0');
  });

  it('is one for all parts of a service, which keep what was counted', async () => {
    const registry = new Registry();
    new Figures(registry).counter('concierge_dead_letters_total').inc({ kind: 'event' });
    new Figures(registry).counter('concierge_dead_letters_total').inc({ kind: 'event' });
    expect(await registry.metrics()).toContain('concierge_dead_letters_total{kind="event"} 2');
  });
});
