import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { callTools, hang, say, startScriptedModel, status, type ScriptedModel } from '@concierge/testing';
import type { ModelHealth } from '../src/openai/index.ts';
import { asking, collectEvents, findEnd, modelsOver, neverAborted } from './provider-fixture.ts';

/** What failed and what answered, and what is not to be asked first. */
class Health implements ModelHealth {
  readonly cooling = new Set<string>();
  readonly reports: (readonly [string, string])[] = [];
  looks = 0;

  get isAllWell(): boolean {
    return this.cooling.size === 0;
  }

  async mayAsk(ref: string): Promise<boolean> {
    this.looks += 1;
    return Promise.resolve(!this.cooling.has(ref));
  }

  failed(ref: string, { isProviders }: { readonly isProviders: boolean }): void {
    this.reports.push([ref, isProviders ? 'provider failed' : 'failed']);
  }

  answered(ref: string): void {
    this.reports.push([ref, 'answered']);
  }
}

let health: Health;
let first: ScriptedModel;
let second: ScriptedModel;
let ask: () => Promise<string>;

setUpEach(async (stack) => {
  health = new Health();
  first = stack.use(await startScriptedModel());
  second = stack.use(await startScriptedModel({ fallback: [say('from the fallback')] }));
  const { models } = modelsOver({ urls: [first.url, second.url], health });
  stack.defer(() => {
    models.close();
  });
  ask = async () => findEnd(await collectEvents(models.forRef().stream(asking('hi'), neverAborted))).model;
});

describe('the health of models', () => {
  it('is not looked at while all are well', async () => {
    expect(await ask()).toBe('p0/m');
    expect([health.looks, health.reports]).toEqual([0, [['p0/m', 'answered']]]);
  });

  it('learns of a model that is left for another, and not of one that answers at its second try', async () => {
    first.enqueue([status(500)]);
    expect(await ask()).toBe('p0/m');
    first.enqueue([status(500)], [status(500)], [status(503)]);
    expect(await ask()).toBe('p1/m');
    first.enqueue([status(401)]);
    expect(await ask()).toBe('p1/m');
    expect(health.reports).toEqual([
      ['p0/m', 'answered'],
      ['p0/m', 'failed'],
      ['p1/m', 'answered'],
      ['p0/m', 'provider failed'],
      ['p1/m', 'answered'],
    ]);
  });

  it('learns nothing of a model that was silent over a call: that one reply was long', async () => {
    const { models } = modelsOver({ urls: [first.url, second.url], limits: { idleMs: 50, firstByteMs: 2000 }, health });
    const request = asking('write', { tools: [{ name: 'write', description: 'Writes.', parameters: { type: 'object' } }] });
    first.enqueue([callTools([{ name: 'write', args: { text: 'half' } }]), hang()]);
    expect(findEnd(await collectEvents(models.forRef().stream(request, neverAborted))).model).toBe('p1/m');
    expect(health.reports).toEqual([['p1/m', 'answered']]);
    first.enqueue([say('half'), hang()]);
    expect(findEnd(await collectEvents(models.forRef().stream(request, neverAborted))).model).toBe('p1/m');
    expect(health.reports.slice(1)).toEqual([
      ['p0/m', 'failed'],
      ['p1/m', 'answered'],
    ]);
    models.close();
  });

  it('learns nothing of a prompt that was flagged: others’ are answered', async () => {
    const metadata = { reasons: ['violence'], flagged_input: 'hi', provider_name: 'p', model_slug: 'm' };
    first.enqueue([status(403, { body: { error: { code: 403, message: 'Your input was flagged', metadata } } })]);
    expect(await ask()).toBe('p1/m');
    expect(health.reports).toEqual([['p1/m', 'answered']]);
    first.enqueue([status(403, { body: { error: { code: 403, message: 'No such key' } } })]);
    expect(await ask()).toBe('p1/m');
    expect(health.reports.slice(1)).toEqual([
      ['p0/m', 'provider failed'],
      ['p1/m', 'answered'],
    ]);
  });

  it('puts what cools down behind the others, where it still is the last resort', async () => {
    health.cooling.add('p0/m');
    expect(await ask()).toBe('p1/m');
    expect(first.requests).toHaveLength(0);
    second.enqueue([status(402)]);
    expect(await ask()).toBe('p0/m');
    health.cooling.add('p1/m');
    expect(await ask()).toBe('p0/m');
  });
});
