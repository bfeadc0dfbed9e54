const words: Readonly<Record<string, string>> = {
  rate_limited: 'Too many messages in a short time. Please wait a moment.',
  too_many_waiting: 'Several of your messages are still waiting for an answer.',
  invalid_signature: 'Please sign in again to go on.',
  tenant_suspended: 'The chat is closed at the moment.',
  invalid_request: 'This message cannot be sent. It may be too long.',
  not_found: 'This answer is not there any more.',
  cancelled: 'Stopped.',
  unreachable: 'No connection. Please try again.',
};

export function wordsFor(code: string): string {
  return words[code] ?? 'Something went wrong. Please try again.';
}
