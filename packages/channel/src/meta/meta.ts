import { isAscii } from 'node:buffer';
import { isSameSecret } from '@concierge/runtime';
import type { WebhookQuery, WebhookRequest } from '../channel-adapter.ts';
import { readHeader, isSigned } from '../inbound/signature.ts';
import { z } from 'zod';
import type { CredentialCheck } from '../outbound/channel-sender.ts';
import {
  askProvider,
  classifyNoAnswer,
  classifyStatus,
  retryAfterMs,
  type NoAnswer,
  type ProviderAnswer,
} from '../outbound/ask-provider.ts';
import { below } from '../outbound/provider-environment.ts';
import { failed, retry, type Backoff, type SendOutcome } from '../outbound/send-outcome.ts';

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
  const given = readHeader(request, 'x-hub-signature-256');
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

/** §1.5 of the Graph API: classes go by the code, which comes with one HTTP status today and with another tomorrow. */
const GraphError = z.object({
  error: z.object({
    message: z.string().default(''),
    code: z.number(),
    error_subcode: z.number().optional(),
    is_transient: z.boolean().optional(),
    error_data: z.object({ details: z.string().optional() }).optional().catch(undefined),
  }),
});

type GraphErrorClass = 'window_closed' | 'refused' | 'recipient_failed' | 'binding_failed' | Backoff;

/** `code`, `code/*` (any subcode) or `code/subcode`; the most exact one counts. */
type GraphErrorTable = ReadonlyMap<string, GraphErrorClass>;

export function graphErrors(classes: Readonly<Partial<Record<GraphErrorClass, readonly (number | string)[]>>>): GraphErrorTable {
  return new Map(listEntries(classes).flatMap(([name, codes]) => codes.map((code) => [String(code), name] as const)));
}

function listEntries(
  classes: Readonly<Partial<Record<GraphErrorClass, readonly (number | string)[]>>>,
): [GraphErrorClass, readonly (number | string)[]][] {
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of such a record are these, which Object.entries forgets
  return Object.entries(classes) as [GraphErrorClass, readonly (number | string)[]][];
}

/** Classifies an answer that is not a success. */
function classifyGraphError(answer: ProviderAnswer, table: GraphErrorTable): SendOutcome {
  const read = GraphError.safeParse(answer.body);
  if (!read.success) return classifyStatus(answer);
  const { error } = read.data;
  const problem = { code: String(error.code), message: error.error_data?.details ?? error.message };
  const known = findClass(table, error) ?? classifyUndocumented(answer.status, error.is_transient === true);
  switch (known) {
    case 'ordinary':
    case 'few':
    case 'pair':
      return retry(problem, { backoff: known, afterMs: graphWaitMs(answer.headers) });
    case 'window_closed':
    case 'refused':
    case 'recipient_failed':
    case 'binding_failed':
      return failed(known, problem);
  }
}

function findClass(
  table: GraphErrorTable,
  { code, error_subcode: subcode }: z.infer<typeof GraphError>['error'],
): GraphErrorClass | undefined {
  const exact = subcode === undefined ? undefined : (table.get(`${String(code)}/${String(subcode)}`) ?? table.get(`${String(code)}/*`));
  return exact ?? table.get(String(code)) ?? permissionClass(code);
}

/** Codes that are not documented. */
function classifyUndocumented(status: number, isTransient: boolean): GraphErrorClass {
  return isTransient || status >= 500 || status === 429 ? 'ordinary' : 'refused';
}

/** All of 200 to 299 are missing permissions. */
function permissionClass(code: number): GraphErrorClass | undefined {
  return code >= 200 && code <= 299 ? 'binding_failed' : undefined;
}

const Usage = z.record(z.string(), z.array(z.object({ estimated_time_to_regain_access: z.number().nonnegative().catch(0) })));

/** How long Meta will refuse: minutes, in a separate header. */
function graphWaitMs(headers: Headers): number | undefined {
  const usage = readUsage(headers.get('x-business-use-case-usage'));
  const minutes = Math.max(0, ...Object.values(usage).flatMap((uses) => uses.map((use) => use.estimated_time_to_regain_access)));
  return minutes > 0 ? minutes * 60_000 : retryAfterMs(headers);
}

function readUsage(header: string | null): z.infer<typeof Usage> {
  try {
    return Usage.catch({}).parse(JSON.parse(header ?? '{}'));
  } catch {
    return {};
  }
}

export interface GraphAccess {
  readonly base: string;
  readonly token: string;
}

/** Shorter ones are no tokens of Meta's, and stand in many a word. */
const QUOTED_TOKEN_MIN_CHARACTERS = 8;

/**
 * A request to the Graph API as the binding's own. An error may quote the token that it refuses: the returned answer
 * never contains it.
 */
export async function askGraph(
  { base, token }: GraphAccess,
  { path, body, signal, timeoutMs }: { path: string; body?: unknown; signal: AbortSignal; timeoutMs?: number | undefined },
): Promise<ProviderAnswer | NoAnswer> {
  const answer = await askProvider({
    url: below(base, path),
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    signal,
  });
  if ('failure' in answer || answer.status < 400 || answer.body === undefined || token.length < QUOTED_TOKEN_MIN_CHARACTERS) return answer;
  return { ...answer, body: withoutToken(answer.body, token) };
}

function withoutToken(body: unknown, token: string): unknown {
  const hide = (_name: string, value: unknown): unknown => (typeof value === 'string' ? value.replaceAll(token, '…') : value);
  return JSON.parse(JSON.stringify(body, hide));
}

const Account = z.object({ id: z.string(), name: z.string().optional(), display_phone_number: z.string().optional() });

/** Whether the token opens the very number or page that the binding names. */
export async function checkGraphAccount(
  access: GraphAccess,
  { id, fields }: { id: string; fields: string },
  signal: AbortSignal,
): Promise<CredentialCheck> {
  const answer = await askGraph(access, { path: `${encodeURIComponent(id)}?fields=${fields}`, signal });
  if ('failure' in answer) return { state: 'unreachable', message: answer.reason };
  const account = Account.safeParse(answer.body);
  if (answer.status === 200 && account.success) {
    if (account.data.id !== id) return { state: 'mismatch', message: 'The access token belongs to another account.' };
    return { state: 'valid', account: account.data.display_phone_number ?? account.data.name ?? id };
  }
  const outcome = classifyGraphError(answer, graphErrors({}));
  if (outcome.kind === 'sent' || outcome.kind === 'retry')
    return { state: 'unreachable', message: outcome.kind === 'retry' ? outcome.message : '' };
  return { state: 'refused', message: `The provider refused the access token: ${outcome.message}` };
}

/** The outcome of a send by either channel; `readId` finds the message id in the answer it hopes for. */
export function classifyGraphSend(
  answer: ProviderAnswer | NoAnswer,
  { readId, errors }: { readonly readId: (body: unknown) => string | undefined; readonly errors: GraphErrorTable },
): SendOutcome {
  if ('failure' in answer) return classifyNoAnswer(answer);
  const providerMessageId = answer.status < 300 ? readId(answer.body) : undefined;
  return providerMessageId === undefined ? classifyGraphError(answer, errors) : { kind: 'sent', providerMessageId };
}
