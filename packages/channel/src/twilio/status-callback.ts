/** Twilio gives nothing of ours back but the address: so that address says which message it is about. It is signed with the rest. */
const MARK = 'mark';

export function statusCallback(webhookUrl: string, mark: string | undefined): string {
  return mark === undefined ? webhookUrl : `${webhookUrl}?${new URLSearchParams({ [MARK]: mark }).toString()}`;
}

export function markIn(url: string): string | null {
  return URL.parse(url)?.searchParams.get(MARK) ?? null;
}
