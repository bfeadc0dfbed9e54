import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { z } from 'zod';
import { addPassword, dataCheck, dataEnvironment } from './config.ts';
import { checkTogether, ConfigError, parseConfig, port, readSecret, seconds, wholeNumber } from './environment.ts';

let folder: string;
setUpEach(async (stack) => {
  folder = stack.use(await temporaryDirectory()).path;
});

async function writeSecret(name: string, text: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

function readProblems(read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

const Settings = z.object({ KEY_SECRET: z.string().min(32, 'must have at least 32 characters'), OPS_TOKEN: z.string().optional() });
const key = 'k'.repeat(32);

describe('a secret in a file', () => {
  it.each([
    ['as it is', key, key],
    ['without the newline at its end', `${key}\n`, key],
    ['without the line end of Windows', `${key}\r\n`, key],
    ['but with a second newline, which may belong to it', `${key}\n\n`, `${key}\n`],
  ])('is read %s', async (_case, text, value) => {
    const file = await writeSecret('key', text);
    expect(parseConfig(Settings, { KEY_SECRET: '', KEY_SECRET_FILE: file })).toEqual({ KEY_SECRET: value });
  });

  it('may be behind a link, as Kubernetes mounts it', async () => {
    await symlink(await writeSecret('..data', key), join(folder, 'key'));
    expect(parseConfig(Settings, { KEY_SECRET_FILE: join(folder, 'key') })).toEqual({ KEY_SECRET: key });
  });

  it('counts as unset when it is empty, as an empty variable does', async () => {
    const empty = await writeSecret('empty', '\n');
    expect(parseConfig(Settings, { KEY_SECRET: key, OPS_TOKEN_FILE: empty })).toEqual({ KEY_SECRET: key });
    expect(readSecret({ OPENAI_API_KEY_FILE: empty }, 'OPENAI_API_KEY')).toBeUndefined();
  });

  it('is refused beside the variable itself, in a line that names both and no value', async () => {
    const file = await writeSecret('key', 'other than the variable, and long enough');
    expect(readProblems(() => parseConfig(Settings, { KEY_SECRET: key, KEY_SECRET_FILE: file }))).toEqual([
      'KEY_SECRET_FILE: cannot be set beside KEY_SECRET; set one of the two',
    ]);
  });

  it('is refused in one line when it cannot be read, is no file, too large or no text', async () => {
    await mkdir(join(folder, 'folder'));
    const files = {
      missing: join(folder, 'missing'),
      folder: join(folder, 'folder'),
      large: await writeSecret('large', 'x'.repeat(17 * 1024)),
      bytes: await writeSecret('bytes', Buffer.from([0xff, 0xfe, 0x00])),
    };
    const reasons = { missing: 'ENOENT', folder: 'no regular file', large: 'more than 16384 bytes', bytes: 'no text' };
    for (const [name, reason] of Object.entries(reasons)) {
      const file = Object.entries(files).find(([each]) => each === name)?.[1] ?? '';
      const [problem, ...others] = readProblems(() => parseConfig(Settings, { KEY_SECRET_FILE: file }));
      expect(others).toEqual([]);
      expect(problem).toMatch(/^KEY_SECRET_FILE: must name a file with the value of KEY_SECRET \(given: /u);
      expect(problem).toContain(reason);
    }
  });

  it('is not looked at by a service that does not read the variable', () => {
    expect(parseConfig(z.object({}), { KEY_SECRET_FILE: join(folder, 'missing') })).toEqual({});
  });
});

describe('a bad value', () => {
  const Variables = z
    .object({
      PORT: port.default(8000),
      GRACE_S: seconds({ max: 3600 }).default(25),
      PAUSE_S: seconds({ max: 60, zero: false }).default(1),
      COUNT: wholeNumber({ min: 1, max: 16 }).default(1),
      SHARE: wholeNumber({ min: 1, max: 16 }).optional(),
      DEPTH: wholeNumber({ min: 1, max: 16 }).default(1),
      KIND: z.enum(['docker', 'bubblewrap', 'off']).default('off'),
      PUBLIC_URL: z.url({ error: 'must be an address without credentials' }).refine((url) => !url.includes('@'), {
        error: 'must be an address without credentials',
      }),
      OPS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
    })
    .transform((given) => given);
  const check = checkTogether({ COUNT: wholeNumber({ max: 16 }).default(1), SHARE: wholeNumber({ max: 16 }).optional() }, (given) =>
    (given.SHARE ?? 1) > given.COUNT ? [['SHARE', 'must not be more than COUNT']] : [],
  );

  it('is told in one line: the variable, what is allowed, what was given; and all of them at once', async () => {
    const file = await writeSecret('token', 'hunter2');
    const env = {
      PORT: 'abc',
      GRACE_S: '-1',
      PAUSE_S: '0',
      COUNT: '2',
      SHARE: '3',
      DEPTH: '2.5',
      KIND: 'chroot',
      PUBLIC_URL: 'https://ann:secret@example.com',
      OPS_TOKEN_FILE: file,
    };
    const problems = readProblems(() => parseConfig(Variables, env, [check]));
    expect(problems).toEqual([
      'PORT: must be a whole number from 0 to 65535 (given: "abc")',
      'GRACE_S: must be a number of seconds from 0 to 3600 (given: "-1")',
      'PAUSE_S: must be a number of seconds above 0 to 60 (given: "0")',
      'DEPTH: must be a whole number from 1 to 16 (given: "2.5")',
      'KIND: must be docker, bubblewrap or off (given: "chroot")',
      'PUBLIC_URL: must be an address without credentials (given: "https://…@example.com")',
      `OPS_TOKEN: must have at least 16 characters (given: 7 characters from ${file})`,
      'SHARE: must not be more than COUNT (given: "3")',
    ]);
  });

  it('that is missing is told so', () => {
    expect(readProblems(() => parseConfig(Variables, {}))).toEqual(['PUBLIC_URL: must be an address without credentials (not set)']);
    expect(readProblems(() => parseConfig(z.object({ NEEDED: z.string() }), { NEEDED: '' }))).toEqual(['NEEDED: is required (not set)']);
  });

  it('is shown on one line however long it is', () => {
    const [problem = ''] = readProblems(() => parseConfig(Variables, { PUBLIC_URL: 'https://example.com', PORT: 'a\nb'.repeat(1000) }));
    expect(problem).not.toContain('\n');
    expect(problem.length).toBeLessThan(250);
  });
});

describe('the password of an address', () => {
  const Addresses = z.object(dataEnvironment);
  const least = { KEY_SECRET: key, REDIS_URL: 'redis://concierge@redis:6379' };

  it.each([
    ['redis://redis:6379', 'redis://:p%40ss%2F%3A%25@redis:6379'],
    ['redis://concierge@redis:6379/1', 'redis://concierge:p%40ss%2F%3A%25@redis:6379/1'],
    ['postgres://concierge@postgres:5432/concierge', 'postgres://concierge:p%40ss%2F%3A%25@postgres:5432/concierge'],
  ])('stands beside it, whatever characters it has: %s', (url, whole) => {
    expect(addPassword(url, 'p@ss/:%')).toBe(whole);
    expect(addPassword(url, undefined)).toBe(url);
    expect(decodeURIComponent(new URL(whole).password)).toBe('p@ss/:%');
  });

  it('is given once', async () => {
    const file = await writeSecret('password', 'secret\n');
    expect(parseConfig(Addresses, { ...least, REDIS_PASSWORD_FILE: file }, [dataCheck]).REDIS_PASSWORD).toBe('secret');
    expect(
      readProblems(() =>
        parseConfig(Addresses, { ...least, REDIS_URL: 'redis://:one@redis:6379', REDIS_PASSWORD_FILE: file }, [dataCheck]),
      ),
    ).toEqual([`REDIS_PASSWORD: cannot be set beside a password in REDIS_URL; leave one of them out (given: 6 characters from ${file})`]);
    const database = { DATABASE_URL: 'postgres://concierge:one@postgres/concierge', DATABASE_PASSWORD: 'two' };
    expect(readProblems(() => parseConfig(Addresses, { ...least, ...database }, [dataCheck]))).toEqual([
      'DATABASE_PASSWORD: cannot be set beside a password in DATABASE_URL; leave one of them out (given: 3 characters)',
    ]);
    expect(
      readProblems(() => parseConfig(Addresses, { ...least, REDIS_URL: 'unix:/run/redis.sock', REDIS_PASSWORD: 'one' }, [dataCheck])),
    ).toEqual(['REDIS_PASSWORD: cannot be set beside a unix: address in REDIS_URL (given: 3 characters)']);
  });
});
