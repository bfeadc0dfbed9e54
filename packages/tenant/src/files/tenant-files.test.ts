import { describe, expect, it } from '@jest/globals';
import { isPrivateName } from './tenant-files.ts';

describe('paths', () => {
  it('knows what is not to be reached by path, in any spelling', () => {
    for (const name of [
      'sessions',
      'Sessions',
      'INBOX',
      'keys',
      'keys.json',
      'tenant.json',
      'Tenant.JSON',
      'tenant.last-good.json',
      'settings',
      'channels',
      'cron',
      'uploads',
      'contacts',
    ]) {
      expect(isPrivateName(name)).toBe(true);
    }
    for (const name of ['skills', 'memory', 'MEMORY.md', 'templates', 'agents', 'session']) expect(isPrivateName(name)).toBe(false);
  });
});
