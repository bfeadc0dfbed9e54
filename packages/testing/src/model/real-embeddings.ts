import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const Listening = z.object({ url: z.url() });

/**
 * Starts a real embeddings model, which runs offline (`real-embeddings-main.ts`), and returns its address. A text takes
 * it some 13 ms.
 * @throws when it ends before it listens
 */
export async function startRealEmbeddings(): Promise<{ readonly url: string } & AsyncDisposable> {
  const entry = fileURLToPath(new URL('real-embeddings-main.ts', import.meta.url));
  const args = ['--conditions=@concierge/source', '--disable-warning=ExperimentalWarning', entry];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [line]: unknown[] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exited.then(() => Promise.reject(new Error('the embeddings model ended before it listened'))),
  ]);
  return {
    url: Listening.parse(JSON.parse(z.string().parse(line))).url,
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
