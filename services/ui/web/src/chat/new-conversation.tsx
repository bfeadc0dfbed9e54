import { channelNames, limits } from '@concierge/contract';
import { useId, useState, type ReactNode } from 'react';
import type { Contact } from '../../../src/chat/conversation.ts';
import { readSenderName, playedSender } from '../../../src/chat/conversation-state.ts';
import { channelLabel } from '../parts/choice.tsx';
import type { Words } from '../words/en.ts';
import { useWords } from '../words/words.tsx';

interface Introduction {
  readonly title: string;
  readonly about: string;
  readonly openings: readonly string[];
}

function introduce(agent: string, { admin, cs, own }: Words['chat']['begin']): Introduction {
  if (agent === 'admin') return { ...admin, openings: [admin.first, admin.second, admin.third] };
  if (agent === 'cs') return { ...cs, openings: [cs.first, cs.second] };
  return { title: own.title(agent), about: own.about(agent), openings: [admin.first] };
}

export interface NewConversationProps {
  readonly agent: string;
  readonly contact: Contact;
  readonly onContact: (change: Partial<Contact>) => void;
  readonly onOpening: (text: string) => void;
}

/** What an empty conversation shows: who will answer, as whom one talks, and how to begin. */
export function NewConversation({ agent, contact, onContact, onOpening }: NewConversationProps): ReactNode {
  const words = useWords().chat.begin;
  const isCs = agent === 'cs';
  const { title, about, openings } = introduce(agent, words);
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
  const words = useWords().chat.begin;
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
          {words.sender}
        </label>
        <input
          id={sender}
          className={field}
          placeholder={words.anonymous}
          maxLength={limits.senderMaxCharacters - (playedSender(' ')?.length ?? 0) + 1}
          value={readSenderName(shown.sender ?? '')}
          onChange={(event) => change({ sender: playedSender(event.target.value) })}
        />
      </div>
      <div>
        <label htmlFor={channel} className="text-sm font-medium">
          {words.channel}
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
