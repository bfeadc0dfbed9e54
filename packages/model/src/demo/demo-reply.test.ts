import { describe, expect, it } from '@jest/globals';
import { callsAskedFor } from './demo-reply.ts';

describe('callsAskedFor', () => {
  it.each([
    ['What can you do? Show me my files.', ['list_files {}']],
    ['list my files', ['list_files {}']],
    ['please read IDENTITY.md', ['read {"path":"IDENTITY.md"}']],
    ['show me skills/opening-hours/SKILL.md', ['read {"path":"skills/opening-hours/SKILL.md"}']],
    ['Remember that I like tea.', ['memory_write {"text":"I like tea."}']],
    ['use the opening-hours skill', ['load_skill {"name":"opening-hours"}']],
    ['load skill opening-hours', ['load_skill {"name":"opening-hours"}']],
    ['status', ['status {}']],
    ['Search for "opening hours"?', ['search_files {"query":"opening hours"}']],
    ['search my files for tea', ['search_files {"query":"tea"}']],
    ['show my conversations', ['sessions_list {}']],
    ['/tool write {"path": "a.md", "content": "x"}', ['write {"path": "a.md", "content": "x"}']],
    ['/tool status', ['status {}']],
    ['/tool read not json', ['read not json']],
    ['status please, then read USER.md', ['status {}', 'read {"path":"USER.md"}']],
    ['Good morning!', []],
  ])('%s', (words, expected) => {
    expect(callsAskedFor(words).map((call) => `${call.tool} ${call.arguments}`)).toEqual(expected);
  });
});
