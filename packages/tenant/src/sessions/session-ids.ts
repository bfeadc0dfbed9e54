import { hashParts } from '@concierge/runtime';

const idHash = { separator: 'unit', digits: 32 } as const;

/**
 * The stable session id, which is also the `contact_id` (contract §3): the first 32 hex digits of a SHA-256 over the
 * three parts.
 */
export function deriveSessionId(agent: string, channel: string, sender: string): string {
  return hashParts([agent, channel, sender], idHash);
}

/** The name below `contacts/` of what is known about one sender; the sender's own spelling never becomes a path. */
export function toContactFolder(sender: string): string {
  return hashParts([sender], idHash);
}

/**
 * The owner of the notes that a contact's turn reads and keeps: the sender; an anonymous one's last as long as its
 * session's id is known.
 */
export function toNotesOwner({ sender, sessionId }: { readonly sender: string | null; readonly sessionId: string }): string {
  return sender ?? `anonymous\u001f${sessionId}`;
}

/** The only names that sessions and contacts have on disk. */
export function isHashedName(name: string): boolean {
  return /^[0-9a-f]{32}$/u.test(name);
}
