import { z } from 'zod';

/** An address that a tenant names: http or https, and nothing in it that must not be shown. */
export const HttpUrl = z
  .url({ protocol: /^https?$/u })
  .max(2048)
  .refine((url) => !hasCredentials(url), 'must not hold credentials: use a header');

function hasCredentials(url: string): boolean {
  const { username, password } = URL.parse(url) ?? { username: '', password: '' };
  return username !== '' || password !== '';
}
