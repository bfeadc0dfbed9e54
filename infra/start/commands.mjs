// Small questions to the machine.
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/** Where a program is on PATH, or null. */
export function findProgram(...names) {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // Not here: the next folder.
      }
    }
  }
  return null;
}

/** Only a program that hangs takes this long: a machine or an engine that has much to do is no failure. */
const TIMEOUT_MS = 60_000;

/**
 * Runs a program; never rejects. `ok` is false when it failed, is missing, took longer than `timeoutMs` or was ended by
 * `signal`.
 */
export function run(command, args, { timeoutMs = TIMEOUT_MS, env = process.env, signal } = {}) {
  return new Promise((resolve) => {
    const child = execFile(command, args, { timeout: timeoutMs, env, signal, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ ok: error === null, stdout, stderr: error === null ? stderr : `${stderr}${error.message}` });
    });
    child.stdin?.end();
  });
}

/** Resolves with whether the port is free. Port 0: resolves with a free port's number. */
export function probePort(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', (error) => {
      if (error.code === 'EADDRINUSE') resolve(null);
      else reject(error);
    });
    server.listen({ port, host, exclusive: true }, () => {
      const { port: bound } = server.address();
      server.close(() => resolve(bound));
    });
  });
}

/** Asks `check` until it answers true; false when `timeoutMs` are over or `signal` is aborted. */
export async function until(check, { timeoutMs, everyMs = 50, signal }) {
  const end = Date.now() + timeoutMs;
  while (Date.now() < end && signal?.aborted !== true) {
    if (await check()) return true;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  return false;
}
