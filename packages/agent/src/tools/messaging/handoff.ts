import { actorName, ContactId, HandoffReason, limits, type HandoffView } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';

export const handoff = defineTool({
  name: 'handoff',
  domain: 'messaging',
  cs: 'full',
  description:
    'Hands a contact’s conversation over to a person, and gives it back. request: from now on a person is to answer there, not the agent, with a reason they can act on; the owner is told, and nothing that an agent writes reaches the contact until it is given back. status: who has it, and all that wait for a person. resume: the agent answers again; only when the owner wants that. request and resume need session_id.',
  narrowDescription:
    'Asks for a person to take this conversation over. Use request when the contact asks for a human, is upset, or needs what you cannot or must not do; try to help first when you can. On a chat app nothing that you write after request reaches the contact, your answer to this message included: what they should know, such as that a person will answer, you say before, with reply. In a web conversation you say it in your answer. status tells whether a person has it. You cannot take it back yourself.',
  schema: z.strictObject({
    action: z.enum(['request', 'status', 'resume']).describe('What to do.'),
    reason: HandoffReason.optional().describe('For request: what the person should know and do, in a sentence or two.'),
    hours: z
      .number()
      .positive()
      .max(limits.handoffMaxHours)
      .optional()
      .describe(
        'For request: the agent goes on by itself after so many hours. Default: as the owner has set it, else only when somebody resumes.',
      ),
    session_id: ContactId.optional().describe('Another conversation, from sessions_list or contacts. For status the default is this one.'),
  }),
  sideEffect: 'writes',
  run: async (input, context) => {
    switch (input.action) {
      case 'request':
        return request(input, context);
      case 'status':
        return status(input.session_id, context);
      case 'resume':
        return resume(input.session_id, context);
    }
  },
});

interface Wish {
  readonly reason?: string | undefined;
  readonly hours?: number | undefined;
  readonly session_id?: string | undefined;
}

async function request({ reason, hours, session_id: sessionId }: Wish, { messaging }: ToolContext): Promise<string> {
  if (reason === undefined) throw new ToolError('request needs reason: what the person should know and do.');
  const { view, isNew } = await messaging.requestHandoff({ reason, hours }, sessionId);
  return [
    isNew ? 'A person is asked for.' : 'A person had been asked for already.',
    describe(view),
    'The owner is told, and sees the conversation in their list. From here on nothing that an agent writes is sent to the contact on a chat app; in a web conversation the answer to the present message is the last they read of you, so say briefly that a person will answer, and promise no time.',
    'Stop working on the matter.',
  ].join('\n');
}

async function status(sessionId: string | undefined, { messaging, access }: ToolContext): Promise<string> {
  const view = await messaging.findHandoff(sessionId);
  const here = view === undefined ? 'No person has been asked for in this conversation: the agent answers.' : describe(view);
  if (access === 'cs' || sessionId !== undefined) return here;
  const { handoffs, broken } = await messaging.pausedHandoffs();
  const waiting = handoffs.length === 0 ? ['No conversation waits for a person.'] : ['Waiting for a person:', ...handoffs.map(describe)];
  const damaged = broken.map((id) => `Conversation ${id} is paused, and the file that says why is damaged; resume clears it.`);
  return [here, ...waiting, ...damaged].join('\n');
}

async function resume(sessionId: string | undefined, { messaging }: ToolContext): Promise<string> {
  const outcome = await messaging.resumeHandoff(sessionId);
  return outcome === 'resumed'
    ? 'The conversation is resumed: the agent answers there again.'
    : 'That conversation is not paused; nothing to resume.';
}

function describe({ sessionId, state, reason, requestedBy, since, until, resumedBy, resumedAt }: HandoffView): string {
  const facts = `Conversation ${sessionId}: ${state}; asked for by ${actorName(requestedBy)} at ${since}: ${reason}`;
  switch (state) {
    case 'paused':
      return until === null ? facts : `${facts} (until ${until})`;
    case 'expired':
      return `${facts} (its time was over at ${until ?? 'some time'})`;
    case 'resumed':
      return `${facts} (resumed by ${resumedBy === null ? 'somebody' : actorName(resumedBy)} at ${resumedAt ?? 'some time'})`;
  }
}
