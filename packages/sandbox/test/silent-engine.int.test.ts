import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import Docker from 'dockerode';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';
import { TurnContainer } from '../src/docker/turn-container.ts';
import { SandboxUnavailable } from '../src/index.ts';
import { defaultLimits, type SandboxCommand } from '../src/sandbox.ts';
import { prepareWorkspace } from '../src/workspace.ts';
import { Workspaces } from './workspaces.ts';

/** An engine that makes a container and takes a command, and hangs when the command is to be started. */
class SilentEngine implements AsyncDisposable {
  readonly docker: Docker;
  readonly #server: Server;
  readonly #stack: AsyncDisposableStack;
  readonly #sockets = new Set<Duplex>();
  /** The command is to be started. */
  readonly asked = Promise.withResolvers<void>();

  private constructor(socketPath: string, stack: AsyncDisposableStack) {
    this.#stack = stack;
    this.docker = new Docker({ socketPath });
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
  }

  static async start(): Promise<SilentEngine> {
    await using opened = new AsyncDisposableStack();
    const socketPath = join(opened.use(await temporaryDirectory()).path, 'docker.sock');
    const engine = new SilentEngine(socketPath, opened.move());
    engine.#server.listen(socketPath);
    await once(engine.#server, 'listening');
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    this.#server.closeAllConnections();
    await this.#stack.disposeAsync();
  }

  #answer({ url = '' }: IncomingMessage, response: ServerResponse): void {
    if (url.includes('/start')) response.writeHead(204).end();
    else response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ Id: 'one' }));
  }

  #upgrade({ url = '' }: IncomingMessage, socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    if (url.includes('/exec/')) this.asked.resolve();
    else socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
  }
}

afterEach(() => {
  jest.useRealTimers();
});

describe('an engine that hangs while a command is being started', () => {
  it('is given up after the time that it has for everything else', async () => {
    await using engine = await SilentEngine.start();
    await using workspaces = await Workspaces.make();
    const request = workspaces.request();
    const workspace = await prepareWorkspace(request);
    const settings = { deployment: 'd', instance: 'i', image: 'image', runtime: undefined, dataFolder: undefined, limits: defaultLimits };
    const container = await TurnContainer.start(engine.docker, { engine: settings, request, workspace });
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
    const command: SandboxCommand = { argv: ['true'], timeoutMs: 60_000 };
    const ended = container.run(command, { signal: new AbortController().signal }).catch((error: unknown) => error);
    await engine.asked.promise;
    jest.advanceTimersByTime(60_000);
    expect(await ended).toBeInstanceOf(SandboxUnavailable);
  });
});
