// Preloaded into services whose power is cut (power-disk.ts): the boot id is that of their simulated machine. With
// `forgets` nothing is synced, and every sync is said to have succeeded: the system that acknowledges too early.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const systemBootFile = '/proc/sys/kernel/random/boot_id';
const given = new URL(import.meta.url).searchParams;
const bootFile = given.get('bootFile');
const { O_DSYNC } = fs.constants;

type Callback = (error: null) => void;
type Anything = (...given: never[]) => unknown;

/** Puts another function in the place of one of node:fs, for all modules that are loaded later. */
function replace(name: 'readFileSync' | 'open' | 'fsync' | 'fdatasync', build: (original: Anything) => unknown): void {
  Reflect.set(fs, name, build(fs[name]));
}

replace(
  'readFileSync',
  (original) =>
    (path: unknown, ...rest: unknown[]): unknown =>
      Reflect.apply(original, fs, [path === systemBootFile ? bootFile : path, ...rest]),
);
if (given.has('forgets')) {
  for (const name of ['fsync', 'fdatasync'] as const)
    replace(name, () => (_descriptor: number, done: Callback) => setImmediate(done, null));
  replace(
    'open',
    (original) =>
      (path: unknown, flags: unknown, ...rest: unknown[]): unknown =>
        Reflect.apply(original, fs, [path, typeof flags === 'number' ? flags & ~O_DSYNC : flags, ...rest]),
  );
}
syncBuiltinESMExports();
