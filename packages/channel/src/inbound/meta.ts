import { isAscii } from 'node:buffer';
import { isSameSecret } from '@concierge/runtime';
import type { WebhookQuery, WebhookRequest } from '../channel-adapter.ts';
import { headerOf, isSigned } from './signature.ts';

/** What WhatsApp, Messenger and Instagram have in common: the same company's webhooks. */
interface MetaSecrets {
  readonly appSecret: string;
  readonly verifyToken: string;
}

/** The sender of a body is not known yet, and escaping a large one takes long. */
const escapedMaxBytes = 64 * 1024;

/** The challenge is an opaque string: it goes back exactly as it came. */
export function metaHandshake(query: WebhookQuery, settings: MetaSecrets | undefined): string | undefined {
  const token = query['hub.verify_token'];
  const challenge = query['hub.challenge'];
  const isOurs = isSameSecret(typeof token === 'string' ? token : undefined, settings?.verifyToken);
  return isOurs && query['hub.mode'] === 'subscribe' && typeof challenge === 'string' ? challenge : undefined;
}

export function isSignedByMeta(request: WebhookRequest, settings: MetaSecrets | undefined): boolean {
  const given = headerOf(request, 'x-hub-signature-256');
  const claim = { secret: settings?.appSecret, prefix: 'sha256=', given } as const;
  if (isSigned({ ...claim, signed: [request.body] })) return true;
  // The documentation states that the signature is over the escaped form. Such a body has always been escaped on the
  // wire already; one that is not means the same when it is.
  const isUnescaped = request.body.length <= escapedMaxBytes && !isAscii(request.body);
  return isUnescaped && isSigned({ ...claim, signed: [escaped(request.body)] });
}

function escaped(body: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);
  return text.replace(/[\u0080-\uFFFF]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
