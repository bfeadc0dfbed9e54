import { randomBytes } from 'node:crypto';
import { Problem, WidgetBody, WidgetConversation, WidgetReply } from '@concierge/contract';
import type { FilePart } from './ask.ts';
import type { TestGateway, TestTenant } from './test-gateway.ts';

export const shop = 'https://shop.example';

interface VisitorRequest {
  readonly method?: string;
  readonly body?: string;
  /** Instead of a body. */
  readonly files?: readonly FilePart[];
  readonly own?: Readonly<Record<string, string | undefined>> | undefined;
}

/** As a page of the shop would ask, for one visitor. */
export class WidgetVisitor {
  readonly #gateway: TestGateway;
  readonly #headers: Record<string, string>;

  constructor(gateway: TestGateway, headers: Record<string, string>) {
    this.#gateway = gateway;
    this.#headers = headers;
  }

  /** Asks for no stream. `own` replaces some of the visitor's headers; undefined leaves one out. */
  async ask(path: string, { own, ...init }: VisitorRequest = {}): Promise<Response> {
    return this.#gateway.ask(undefined, path, { ...init, headers: this.#headersWith(own) });
  }

  #headersWith(own: VisitorRequest['own'] = {}): Headers {
    const headers = new Headers(this.#headers);
    for (const [name, value] of Object.entries(own)) {
      if (value === undefined) headers.delete(name);
      else headers.set(name, value);
    }
    return headers;
  }

  async say(message: string, own: Readonly<Record<string, string | undefined>> = {}): Promise<Response> {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json', ...own };
    const request = { method: 'POST', body: JSON.stringify({ message }) };
    // A stream is read while it comes.
    if (headers.Accept !== 'application/json')
      return this.#gateway.open(undefined, '/widget/messages', { ...request, headers: this.#headersWith(headers) });
    return this.ask('/widget/messages', { ...request, own: headers });
  }
}

/** Switches the tenant's widget on for the shop's pages; its publishable key. */
export async function enableWidget({ scope }: TestTenant, more: Partial<WidgetBody> = {}): Promise<string> {
  const view = await scope.widget.put({ ...WidgetBody.parse({ enabled: true, origins: [shop] }), ...more });
  return view.key ?? '';
}

export function newVisitor(gateway: TestGateway, key: string): WidgetVisitor {
  const secret = randomBytes(16).toString('hex');
  return new WidgetVisitor(gateway, { Origin: shop, Authorization: `Bearer ${key}`, 'X-Widget-Visitor': secret });
}

export function signedVisitor(gateway: TestGateway, key: string, token: string): WidgetVisitor {
  return new WidgetVisitor(gateway, { Origin: shop, 'X-Widget-Key': key, 'X-Widget-Token': token });
}

/** Status and code of a problem. */
export async function readCode(response: Response): Promise<readonly [number, string]> {
  const { status, code } = Problem.parse(await response.json());
  return [status, code];
}

export async function readReply(response: Response): Promise<WidgetReply> {
  if (response.status !== 200) throw new Error(`${String(response.status)} ${await response.text()}`);
  return WidgetReply.parse(await response.json());
}

export async function readConversation(visitor: WidgetVisitor): Promise<WidgetConversation> {
  return WidgetConversation.parse(await (await visitor.ask('/widget/conversation')).json());
}
