import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { indexBackends, stopIndexBackends, type IndexUnderTest } from '@concierge/testing';
import type { IndexStore } from '../src/open-index.ts';
import type { TenantIndex } from '../src/tenant-index.ts';
import type { IndexedContact } from '../src/types.ts';
import { allPages, at, contact, session, sessionId } from './index-samples.ts';

afterAll(stopIndexBackends);

for (const backend of indexBackends) {
  (backend.available ? describe : describe.skip)(`contacts in ${backend.name}`, () => {
    let database: IndexUnderTest;
    let store: IndexStore;
    let index: TenantIndex;

    beforeEach(async () => {
      database = await backend.start();
      store = await database.open();
      index = store.forTenant('acme');
    });
    afterEach(async () => database[Symbol.asyncDispose]());

    it('are listed by the last use of their conversations, each once, page by page', async () => {
      await index.putSessions(
        ['Ann', '4915', null, '4915', 'bob', 'Ann'].map((sender, number) => ({
          session: session(number, { sender, updatedAt: at(number) }),
        })),
      );
      const listed = await allPages<IndexedContact>(async (cursor) => index.listContacts({ limit: 1, cursor }));
      expect(listed).toEqual([
        { sender: 'Ann', conversations: 2, lastSeenAt: at(5) },
        { sender: 'bob', conversations: 1, lastSeenAt: at(4) },
        { sender: '4915', conversations: 2, lastSeenAt: at(3) },
      ]);
    });

    it('are found by a part of their name or id, as it was put last, until they are removed', async () => {
      await index.putSessions(['Ann', '4915', 'bob'].map((sender, number) => ({ session: session(number, { sender }) })));
      for (const [number, sender, name] of [
        [1, 'Ann', 'Ann Lee'],
        [2, '4915', 'Zoë'],
        [3, 'never written', 'Zoë 100 %'],
        [1, 'Ann', 'Zoë Lee'],
        [4, 'silent', null],
      ] as const)
        await index.putContact(contact(number, sender, name));
      const list = async (text: string, senders: string[] = []): Promise<string[]> =>
        (await index.listContacts({ limit: 9, words: { text, senders } })).items.map(({ sender }) => sender).toSorted();
      expect(await list('zoë')).toEqual(['4915', 'Ann']);
      expect(await list('ann lee')).toEqual([]);
      expect(await list('zoë lee', ['bob'])).toEqual(['Ann', 'bob']);
      expect(await list('ann')).toEqual(['Ann']);
      expect(await index.findContacts('ZOË', 9)).toEqual(['Ann', '4915', 'never written']);
      expect(await index.findContacts('ZOË', 2)).toEqual(['Ann', '4915']);
      expect(await index.findContacts('100 %', 9)).toEqual(['never written']);
      expect(await index.findContacts('ilen', 9)).toEqual(['silent']);
      expect(await store.forTenant('other').findContacts('zoë', 9)).toEqual([]);
      await index.removeContacts([1, 3].map((number) => sessionId(number)));
      await index.removeContacts([sessionId(3)]);
      expect(await index.findContacts('zoë', 9)).toEqual(['4915']);
      await index.putContact(contact(1, 'Ann', 'Zoë again'));
      expect(await list('zoë')).toEqual(['4915', 'Ann']);
    });

    it('are found by a part of an id in any case of any script, and by no other words of their conversations', async () => {
      const senders = ['Ольга', 'ZOË@example.com', 'İpek', 'a_b'];
      await index.putSessions(senders.map((sender, number) => ({ session: session(number, { sender, title: 'ольга zoë 50 %' }) })));
      const list = async (text: string): Promise<string[]> =>
        (await index.listContacts({ limit: 9, words: { text, senders: [] } })).items.map(({ sender }) => sender);
      expect(await list('Ольга')).toEqual(['Ольга']);
      expect(await list('ЛЬГА')).toEqual(['Ольга']);
      expect(await list('zoë@')).toEqual(['ZOË@example.com']);
      expect(await list('İPEK')).toEqual(['İpek']);
      expect(await list('A_')).toEqual(['a_b']);
      expect(await list('50 %')).toEqual([]);
    });
  });
}
