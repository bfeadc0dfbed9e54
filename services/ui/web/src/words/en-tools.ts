/** Texts of what is tried before customers do, and of the history of files. */
export const toolsEn = {
  prompt: {
    title: 'What the model will see',
    about: 'The prompt of the next turn, by file. Tokens are estimated by length.',
    agent: 'Agent of the prompt',
    session: 'Conversation',
    newOne: 'A new conversation',
    part: 'Part',
    tokens: 'Tokens',
    change: 'Since the last turn',
    changes: { new: 'new', changed: 'changed', gone: 'gone' },
    sum: (tokens: string) => `About ${tokens} tokens in all.`,
    lastTurn: 'The last turn',
    parts: { tools: 'Tools', history: 'The conversation so far', skills: 'Skills, by name' },
  },
};
