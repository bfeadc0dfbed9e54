/**
 * Tells the other tabs of this browser that who is signed in has changed. Where the browser has no such channel, they
 * find out with their next request.
 */
export class TabMessages {
  readonly #channel: BroadcastChannel | null;

  constructor(name: string, onMessage: () => void) {
    this.#channel = openChannel(name);
    this.#channel?.addEventListener('message', onMessage);
  }

  send(): void {
    this.#channel?.postMessage('changed');
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
