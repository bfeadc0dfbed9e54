import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;
beforeEach(async () => {
  concierge = await CommandLine.over();
  await concierge.json('tenant', 'create', 'acme');
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

describe('concierge retention', () => {
  it('sets a rule, says what it would remove, and stores nothing in a dry run', async () => {
    expect((await concierge.run('retention', 'acme')).out).toContain('everything is kept');
    expect(await concierge.json('retention', 'acme', 'sessionsDays=365', '--dry-run')).toMatchObject({ rule: { sessionsDays: 365 } });
    expect(await concierge.json('retention', 'acme')).toMatchObject({ rule: {}, sessions: { count: 0 }, hasMore: false });
    await concierge.json('retention', 'acme', 'sessionsDays=365', 'uploadsDays=30');
    expect((await concierge.run('retention', 'acme')).out).toMatch(/sessionsDays=365 uploadsDays=30\n/u);
    expect(await concierge.json('retention', 'acme', 'uploadsDays=none')).toMatchObject({ rule: { sessionsDays: 365 } });
    const audit = await concierge.run('audit', 'acme');
    expect(audit.out).toMatch(/tenant\.update +acme +retention/u);
  });

  it('refuses what is no rule', async () => {
    for (const pair of ['sessionsDays=0', 'sessionsDays=never', 'everything=3', 'sessionsDays'])
      expect((await concierge.run('retention', 'acme', pair)).code).toBe(1);
  });
});
