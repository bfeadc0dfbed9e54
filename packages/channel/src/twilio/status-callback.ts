/** Twilio returns nothing of ours but the address, so the address names the message. It is signed with the rest. */
const MARK = 'mark';

export function statusCallback(webhookUrl: string, mark: string | undefined): string {
  return mark === undefined ? webhookUrl : `${webhookUrl}?${new URLSearchParams({ [MARK]: mark }).toString()}`;
}

export function markIn(url: string): string | null {
  return URL.parse(url)?.searchParams.get(MARK) ?? null;
}
