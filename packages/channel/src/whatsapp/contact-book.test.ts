import { expect, it } from '@jest/globals';
import { ContactBook } from './contact-book.ts';

it('finds the one with any of the ids, the first of several', () => {
  const book = new ContactBook([{ wa_id: '491' }, { wa_id: '492', user_id: 'U2' }, { user_id: 'U1' }]);
  expect(book.contactOf(['492', undefined])).toEqual({ wa_id: '492', user_id: 'U2' });
  expect(book.contactOf(['491', 'U1'])).toEqual({ wa_id: '491' });
  expect(book.contactOf(['493', 'U3'])).toBeUndefined();
});

it('takes the only one there is for a sender without an id', () => {
  expect(new ContactBook([{ wa_id: '491' }]).contactOf([undefined])).toEqual({ wa_id: '491' });
  expect(new ContactBook([{ wa_id: '491' }, { wa_id: '492' }]).contactOf([undefined])).toBeUndefined();
});

it('looks at each contact once, however many messages there are: a body may hold tens of thousands of both', () => {
  let looks = 0;
  const contacts = Array.from({ length: 100 }, (_, index) => ({
    get wa_id() {
      looks += 1;
      return String(index);
    },
  }));
  const book = new ContactBook(contacts);
  for (let message = 0; message < 100; message += 1) book.contactOf([String(99 - message)]);
  expect(looks).toBe(100);
});
