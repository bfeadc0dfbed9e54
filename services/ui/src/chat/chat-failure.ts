const advice: Readonly<Record<string, string>> = {
  missing_key: 'Sign in again.',
  invalid_key: 'Check that the whole key was pasted; it begins with ck_live_.',
  revoked_key: 'Ask for a new key and sign in with it.',
  scope_required: 'Sign in with a key whose scopes allow this.',
  tenant_suspended: 'Ask the people who operate the service.',
  too_many_waiting: 'Wait until some of the waiting messages have been answered.',
  rate_limited: 'Wait a while, then try again.',
  too_large: 'Send something smaller.',
  unsupported_media_type: 'Send a PNG, JPEG, GIF, WebP, PDF or text file.',
  not_found: 'It may have been deleted. Start a new conversation.',
  contact_mismatch: 'Start a new conversation for this contact.',
  provider_error: 'Try again in a moment.',
  turn_timeout: 'Try again, or ask for less at once.',
  unreachable: 'Check the connection, then try again.',
  overloaded: 'Try again in a moment.',
  shutting_down: 'Try again in a moment.',
};

/** What happened and what to do about it, as sentences. */
export function explain({ code, message }: { readonly code: string; readonly message: string }): string {
  const happened = /[.!?…]$/u.test(message) ? message : `${message}.`;
  return `${happened} ${advice[code] ?? ''}`.trim();
}
