import { readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Session, SessionMessage } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';

interface Section {
  readonly head: string;
  readonly body: string;
}

const notesAt = new Date('2026-09-01T09:00:00.000Z');

/** Puts the shop's notes and conversations into a tenant; the titles of the conversations by their ids. */
export async function fillShop(scope: TenantScope): Promise<ReadonlyMap<string, string>> {
  for (const { head, body } of await sectionsOf('notes.md')) {
    await scope.files.writeText(head, body);
    await utimes(join(scope.root, head), notesAt, notesAt);
  }
  const titles = new Map<string, string>();
  for (const section of await sectionsOf('sessions.md')) {
    const session = sessionOf(section);
    await scope.sessions.publish(session);
    await scope.index.putSession(session);
    titles.set(session.id, session.title);
  }
  return titles;
}

/** `=== head`, and what follows until the next one. */
async function sectionsOf(file: string): Promise<Section[]> {
  const text = await readFile(new URL(file, import.meta.url), 'utf8');
  return text
    .split(/^=== /mu)
    .slice(1)
    .map((part) => ({ head: part.slice(0, part.indexOf('\n')).trim(), body: `${part.slice(part.indexOf('\n') + 1).trim()}\n` }));
}

/** `agent | sender | day | title`, and lines of `user:` and `assistant:`. */
function sessionOf({ head, body }: Section): Session {
  const [agent = '', sender = '', day = '', title = ''] = head.split('|').map((part) => part.trim());
  const at = `${day}T10:00:00.000Z`;
  const messages = [...body.matchAll(/^(user|assistant): (.*)$/gmu)].map(([, role, text = ''], index): SessionMessage => {
    const base = { id: `m${String(index)}`, turnId: `t${String(index)}`, at };
    return role === 'user' ? { ...base, role, text, sent: text } : { ...base, role: 'assistant', text };
  });
  return {
    version: 1,
    id: deriveSessionId(agent, 'web', `${sender} ${title}`),
    agent,
    channel: 'web',
    sender: sender === '-' ? null : sender,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title,
    messageCount: messages.length,
    summary: null,
    messages,
    turns: [],
    contextTokens: null,
  };
}
