import { closeSync, linkSync, openSync, readdirSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { FileStep, StepsAnswer } from './file-steps.ts';
import { isSystemError } from './system-error.ts';

/*
 * Does what many callers ask for in one go: each of these calls costs less than what it takes to wake a thread of the
 * pool for it.
 */

const privateMode = 0o600;

function runStep(step: FileStep): readonly string[] {
  switch (step.do) {
    case 'create':
      create(step.path, step.content);
      return [];
    case 'link':
      linkSync(step.from, step.to);
      return [];
    case 'rename':
      renameSync(step.from, step.to);
      return [];
    case 'remove':
      remove(step.path);
      return [];
    case 'list':
      return readdirSync(step.path);
  }
}

function create(path: string, content: string): void {
  const descriptor = openSync(path, 'wx', privateMode);
  try {
    const bytes = Buffer.from(content);
    for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written);
  } finally {
    closeSync(descriptor);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT', 'ENOTDIR')) throw error;
  }
}

function answer(steps: readonly FileStep[]): StepsAnswer {
  try {
    return { names: steps.flatMap((step) => runStep(step)) };
  } catch (error) {
    const { message, code, syscall, path } = error as NodeJS.ErrnoException; // eslint-disable-line typescript/no-unsafe-type-assertion -- node:fs throws nothing else
    return { failure: { message, code, syscall, path } };
  }
}

parentPort?.on('message', (jobs: readonly (readonly FileStep[])[]) => {
  const startedMs = performance.now();
  const answers = jobs.map((steps) => answer(steps));
  parentPort?.postMessage({ answers, tookMs: performance.now() - startedMs });
});
