/**
 * Tells the other tabs of this browser something, such as that who is signed in has changed. Where the browser has no
 * such channel, they find out with their next request.
 */
export class TabMessages {
  readonly #channel: BroadcastChannel | null;

  constructor(name: string, onMessage: (message: unknown) => void) {
    this.#channel = openChannel(name);
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<unknown>) => onMessage(data));
  }

  send(message: unknown = 'changed'): void {
    this.#channel?.postMessage(message);
  }

  close(): void {
    this.#channel?.close();
  }
}

function openChannel(name: string): BroadcastChannel | null {
  try {
    return new BroadcastChannel(name);
  } catch {
    return null;
  }
}
