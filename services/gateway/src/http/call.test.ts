import { describe, expect, it } from '@jest/globals';
import { pageLink } from './call.ts';

describe('pageLink', () => {
  it('repeats the query and adds the cursor', () => {
    expect(pageLink('/api/sessions', { limit: 2, agent: 'cs' }, 'a+b/c=')).toEqual({
      Link: '</api/sessions?limit=2&agent=cs&cursor=a%2Bb%2Fc%3D>; rel="next"',
    });
  });

  it('leaves out what was not asked for, and itself on the last page', () => {
    expect(pageLink('/api/sessions', { limit: 25, agent: undefined }, 'x')).toEqual({
      Link: '</api/sessions?limit=25&cursor=x>; rel="next"',
    });
    expect(pageLink('/api/sessions', { limit: 25 }, null)).toEqual({});
  });
});
