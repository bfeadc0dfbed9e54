import type { BrowserContextOptions } from 'playwright-core';
import { onPhone, type BrowserVisit } from './page-checks.ts';

/** Two widths, a language at each. */
export const widths: readonly (readonly [string, BrowserContextOptions])[] = [
  ['wide', {}],
  ['phone', { ...onPhone, locale: 'de-DE' }],
];

/** Ids of what the screens of one thing show. */
export interface Shown {
  readonly tenant: string;
  readonly turn: string;
  readonly session: string;
  readonly schedule: string;
}

/** Addresses by the names of their screens; an id stands in them as `{turn}`. */
export type Screens = Readonly<Record<string, string>>;

/** Those of an owner, behind the sign-in. */
export const ownerScreens: Screens = {
  today: '/',
  inbox: '/inbox',
  'inbox-conversation': '/inbox/{session}',
  'chat-new': '/chat',
  'chat-conversation': '/chat/{session}',
  turns: '/turns',
  turn: '/turns/{turn}',
  schedules: '/schedules',
  schedule: '/schedules/{schedule}',
  files: '/files',
  file: '/files?path=AGENTS.md',
  skills: '/skills',
  channels: '/channels',
  channel: '/channels/telegram',
  agents: '/agents',
  memory: '/memory',
  usage: '/usage',
  settings: '/settings',
  'not-found': '/no-such-page',
};

/** Those of operators. */
export const operatorScreens: Screens = {
  now: '/operate',
  waiting: '/operate/waiting',
  turns: '/operate/turns',
  turn: '/operate/turns/{tenant}/{turn}',
  failures: '/operate/failures',
  workers: '/operate/workers',
  deliveries: '/operate/deliveries',
  tenants: '/operate/tenants',
  tenant: '/operate/tenants/{tenant}',
  health: '/operate/health',
  logs: '/operate/logs',
  audit: '/operate/audit',
  internals: '/operate/queues',
  'not-found': '/operate/no-such-page',
};

/** The address of a screen of these things. */
export function toPath(address: string, shown: Shown): string {
  return Object.entries(shown).reduce((path, [name, id]) => path.replace(`{${name}}`, id), address);
}

/** Opens a screen, and waits until it shows what it has found. */
export async function openScreen(visit: BrowserVisit, path: string): Promise<void> {
  await visit.goTo(path);
  await visit.shows(visit.page.getByRole('heading', { level: 1 }).first());
  await visit.page
    .getByText(/^(?:Loading|Lädt) …$/u)
    .first()
    .waitFor({ state: 'hidden' });
}
