import type { RemovedSession, Skill } from '@concierge/contract';
import type { IndexSource, NamedContact, SourceSession } from '@concierge/index';
import type { Log } from '@concierge/runtime';
import type { Contacts } from './contacts/contacts.ts';
import type { SessionStore } from './sessions/session-store.ts';
import type { Skills } from './skills/skills.ts';

interface FilesSourceOptions {
  readonly tenantId: string;
  readonly sessions: SessionStore;
  readonly skills: Skills;
  /** They read the index that is filled from here, and so are made after it. */
  readonly contacts: () => Pick<Contacts, 'listNamed' | 'catchUp'>;
  readonly log: Log;
}

/** One tenant's files as the index is rebuilt from: the index contains nothing that these do not. */
export class FilesSource implements IndexSource {
  readonly #options: FilesSourceOptions;

  constructor(options: FilesSourceOptions) {
    this.#options = options;
  }

  /** A session that cannot be read is logged and left out: one bad file must not keep the others from being found. */
  async *sessions(): AsyncGenerator<SourceSession> {
    const { tenantId, sessions, log } = this.#options;
    for await (const id of sessions.ids()) {
      try {
        const session = await sessions.load(id);
        if (session === undefined) continue;
        yield { session, turns: await sessions.readSessionTurns(session) };
      } catch (error) {
        log.error({ tenantId, sessionId: id, err: error }, 'session cannot be read, the index is rebuilt without it');
      }
    }
  }

  removed(): AsyncIterable<RemovedSession> {
    return this.#options.sessions.removed();
  }

  contacts(): AsyncIterable<NamedContact> {
    return this.#options.contacts().listNamed();
  }

  async catchUpContacts(): Promise<void> {
    await this.#options.contacts().catchUp();
  }

  async skills(): Promise<readonly Skill[]> {
    return this.#options.skills.list();
  }
}
