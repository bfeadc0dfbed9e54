import { describe, expect, it } from '@jest/globals';
import { errorCodes } from '../errors/error-code.ts';
import { integerParameter, listErrors, type Route } from './route.ts';
import { routes } from './routes.ts';

const all = Object.entries<Route>(routes);

describe('routes', () => {
  it('carry the id under which they are known, and each has its own method and path', () => {
    for (const [id, route] of all) expect(route.id).toBe(id);
    expect(new Set(all.map(([, { method, path }]) => `${method} ${path}`)).size).toBe(all.length);
  });

  it('have a schema for every parameter of their path', () => {
    for (const [, { path, params }] of all) {
      const names = [...path.matchAll(/\{(\w+)\}/gu)].map(([, name]) => name);
      expect(Object.keys(params?.shape ?? {})).toEqual(names);
    }
  });

  it('answer a GET without changing anything, so that read keys may ask', () => {
    for (const [, { method, scopes, auth }] of all)
      expect(auth === 'key' && scopes.includes('read')).toBe(auth === 'key' && method === 'get');
  });
});

describe('listErrors', () => {
  it('adds what authentication, body and parameters bring along', () => {
    expect(listErrors(routes.chatWithAdmin)).toEqual(
      expect.arrayContaining([
        'missing_key',
        'rate_limited',
        'invalid_json',
        'too_large',
        'shutting_down',
        'session_busy',
        'internal_error',
      ]),
    );
    expect(listErrors(routes.livez)).toEqual(['internal_error']);
  });

  it('names only codes there are', () => {
    for (const [, route] of all) for (const code of listErrors(route)) expect(errorCodes[code]).toBeDefined();
  });
});

describe('integerParameter', () => {
  const limit = integerParameter({ min: 1, max: 100, default: 25 });

  it.each([
    [undefined, 25],
    ['1', 1],
    ['100', 100],
  ])('reads %p as %p', (given, expected) => {
    expect(limit.parse(given)).toBe(expected);
  });

  it.each(['', '0', '101', '-1', '+5', '1e1', '0x10', ' 5', '5.0', '05', 'ten', ['5', '6'], null])('refuses %p', (given) => {
    expect(limit.safeParse(given).success).toBe(false);
  });
});
