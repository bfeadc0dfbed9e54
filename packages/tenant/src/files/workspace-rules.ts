import { foldName } from '@concierge/files';

/** What is not the tenant's to read or write by path: state with rules of its own, reached through its own classes. */
const privateNames = new Set([
  'sessions',
  'inbox',
  'channels',
  'cron',
  'keys',
  'keys.json',
  'tenant.json',
  'settings',
  // A file of earlier versions; its content moves to settings/ (see `SettingsFiles`).
  'tenant.last-good.json',
  'uploads',
  'mcp',
  'contacts',
  'handoffs',
  'outbox',
  'widget',
  'events',
]);

/**
 * The top of a tenant's folder as its commands see it: our own state not at all, what was attached to messages to read
 * only. Everything else is the workspace.
 */
export const workspaceRules: { readonly masked: readonly string[]; readonly readOnly: readonly string[] } = {
  masked: [...privateNames].filter((name) => name !== 'uploads'),
  readOnly: ['uploads'],
};

/** Is this first part of a path one that only our own code may touch? */
export function isPrivateName(name: string): boolean {
  return privateNames.has(foldName(name));
}
