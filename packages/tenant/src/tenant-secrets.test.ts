import { describe, expect, it } from '@jest/globals';
import { TenantSecrets } from './tenant-secrets.ts';

const secrets = new TenantSecrets('acme', 'a secret of the operator');

describe('TenantSecrets', () => {
  it('opens what it sealed, and seals the same text to another each time', () => {
    const sealed = secrets.seal('channels/telegram.botToken', '12:ü');
    expect(sealed).not.toContain('12:');
    expect(secrets.open('channels/telegram.botToken', sealed)).toBe('12:ü');
    expect(secrets.seal('channels/telegram.botToken', '12:ü')).not.toBe(sealed);
  });

  it.each([
    ['another field', secrets, 'channels/slack.botToken'],
    ['another tenant', new TenantSecrets('other', 'a secret of the operator'), 'place'],
    ['another key', new TenantSecrets('acme', 'another secret'), 'place'],
  ])('opens nothing in %s', (_case, elsewhere, place) => {
    const sealed = secrets.seal('place', 'token');
    expect(() => elsewhere.open(place, sealed)).toThrow('cannot be read');
  });

  it('opens nothing that was changed or cut, and nothing without a key', () => {
    const sealed = secrets.seal('place', 'token');
    for (const broken of ['', 'v1', sealed.slice(0, -2), `${sealed}AA`, sealed.replace('v1', 'v2')]) {
      expect(() => secrets.open('place', broken)).toThrow('cannot be read');
    }
    expect(() => new TenantSecrets('acme', undefined).seal('place', 'token')).toThrow('SECRETS_KEY');
  });
});
