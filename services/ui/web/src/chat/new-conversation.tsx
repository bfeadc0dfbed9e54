import { channelNames, limits } from '@concierge/contract';
import { useId, useState, type ReactNode } from 'react';
import type { Contact } from '../../../src/chat/conversation.ts';
import { readSenderName, playedSender } from '../../../src/chat/conversation-state.ts';
import { channelLabel } from '../parts/choice.tsx';

interface Introduction {
  readonly title: string;
  readonly about: string;
  readonly openings: readonly string[];
}

const introductions: Readonly<Record<string, Introduction>> = {
  admin: {
    title: 'Talk to your agent',
    about: 'The admin agent works for you: it reads and writes this tenant’s files and memory, uses tools, and keeps schedules.',
    openings: [
      'What can you do for me?',
      'Read my context files and tell me what is still missing.',
      'Every weekday at 8:00, sum up what customers asked the day before.',
    ],
  },
  cs: {
    title: 'Talk as a customer',
    about:
      'This is the cs agent as your customers meet it. Choose whom you play: the same sender on the same channel always comes back to the same conversation.',
    openings: ['Hello, what are your opening hours?', 'I would like to speak to a person, please.'],
  },
};

function introduce(agent: string): Introduction {
  const about = `An agent of your own: agents/${agent}.md says what it is for and what it may use.`;
  return introductions[agent] ?? { title: `Talk to ${agent}`, about, openings: ['What can you do for me?'] };
}

export interface NewConversationProps {
  readonly agent: string;
  readonly contact: Contact;
  readonly onContact: (change: Partial<Contact>) => void;
  readonly onOpening: (text: string) => void;
}

/** What an empty conversation shows: who will answer, as whom one talks, and how to begin. */
export function NewConversation({ agent, contact, onContact, onOpening }: NewConversationProps): ReactNode {
  const isCs = agent === 'cs';
  const { title, about, openings } = introduce(agent);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto flex min-h-full max-w-xl flex-col justify-center px-5 py-8">
        <h2 className="text-2xl font-semibold tracking-tight">{title}</h2>
        <p className="mt-2 text-muted-foreground">{about}</p>
        {isCs && <ContactFields contact={contact} onContact={onContact} />}
        <ul className="mt-6 space-y-1.5">
          {openings.map((opening) => (
            <li key={opening}>
              <button
                type="button"
                className="w-full rounded-xl border px-4 py-2.5 text-left text-sm transition-colors hover:border-input hover:bg-muted"
                onClick={() => onOpening(opening)}
              >
                {opening}
              </button>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function ContactFields({ contact, onContact }: Pick<NewConversationProps, 'contact' | 'onContact'>): ReactNode {
  // The fields' own state: the conversation's is painted a frame later, and a field must not lag behind its typist.
  const [shown, setShown] = useState(contact);
  const change = (changed: Partial<Contact>): void => {
    setShown((before) => ({ ...before, ...changed }));
    onContact(changed);
  };
  const sender = useId();
  const channel = useId();
  const field = 'mt-1 h-9 w-full rounded-lg border border-input bg-background px-3 text-sm';
  return (
    <div className="mt-5 grid gap-3 sm:grid-cols-[1fr_10rem]">
      <div>
        <label htmlFor={sender} className="text-sm font-medium">
          Sender
        </label>
        <input
          id={sender}
          className={field}
          placeholder="Anonymous visitor"
          maxLength={limits.senderMaxCharacters - (playedSender(' ')?.length ?? 0) + 1}
          value={readSenderName(shown.sender ?? '')}
          onChange={(event) => change({ sender: playedSender(event.target.value) })}
        />
      </div>
      <div>
        <label htmlFor={channel} className="text-sm font-medium">
          Channel
        </label>
        <select
          id={channel}
          className={field}
          value={shown.channel}
          onChange={(event) => change({ channel: channelNames.find((name) => name === event.target.value) ?? 'web' })}
        >
          {channelNames.map((name) => (
            <option key={name} value={name}>
              {channelLabel(name)}
            </option>
          ))}
        </select>
      </div>
    </div>
  );
}
