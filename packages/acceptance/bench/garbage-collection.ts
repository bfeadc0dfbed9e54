import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ServiceProcess } from '@concierge/testing';

const SETTLE_MS = 1500;

/**
 * Has a service clear its memory, so that what is left is what it needs: its inspector is opened by a signal and asked
 * twice. The process must have been started with `--inspect-port=0`, and `log` must answer what it printed.
 */
export async function collectGarbage(service: ServiceProcess, log: () => Promise<string>): Promise<void> {
  const url = await inspectorOf(service, log);
  for (let pass = 0; pass < 2; pass += 1) {
    await command(url, 'HeapProfiler.collectGarbage');
    await wait(SETTLE_MS);
  }
}

async function inspectorOf(service: ServiceProcess, log: () => Promise<string>): Promise<string> {
  const urlIn = (text: string): string | undefined => /listening on (?<url>ws:\/\/\S+)/u.exec(text)?.groups?.['url'];
  const open = urlIn(await log());
  if (open !== undefined) return open;
  await service.signal('SIGUSR1');
  return eventually(async () => urlIn(await log()), { timeoutMs: 10_000 });
}

async function command(url: string, method: string): Promise<void> {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  socket.send(JSON.stringify({ id: 1, method }));
  await once(socket, 'message');
  socket.close();
}
