import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProvidersFile } from '@concierge/contract';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { describeModel, openProvidersFile } from './providers.mjs';

describe('the providers file of a first start', () => {
  let folder;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-providers-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('can be read by its owner only, and names the variable it waits for', () => {
    const path = openProvidersFile(folder, {});
    expect(statSync(path).mode % 0o1000).toBe(0o600);
    expect(ProvidersFile.parse(JSON.parse(readFileSync(path, 'utf8'))).default).toBe('openai/gpt-5-mini');
    expect(describeModel(path, true)).toMatch(/^demo model, because .* names no usable key \(set OPENAI_API_KEY/u);
    expect(describeModel(path, false)).toContain('openai/gpt-5-mini');
  });

  it('is not made where PROVIDERS_FILE names another', () => {
    const other = join(folder, 'other.json');
    expect(openProvidersFile(folder, { PROVIDERS_FILE: other })).toBe(other);
    expect(() => statSync(join(folder, 'providers.json'))).toThrow('ENOENT');
  });
});
