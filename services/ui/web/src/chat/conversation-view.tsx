import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { explain } from '../../../src/chat/chat-failure.ts';
import { isUnderWay } from '../../../src/chat/chat-turn.ts';
import type { Conversation } from '../../../src/chat/conversation.ts';
import { readSenderName, type ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { Composer, type Draft } from './composer.tsx';
import { SpinnerIcon } from '../parts/icons.tsx';
import { preloadMarkdown } from './lazy-markdown.tsx';
import { NewConversation } from './new-conversation.tsx';
import { StaffComposer } from './staff-composer.tsx';
import { Transcript } from './transcript.tsx';
import type { TurnActions } from './turn-card.tsx';

export interface ConversationViewProps {
  readonly gateway: GatewayClient;
  readonly conversation: Conversation;
  readonly state: ConversationState;
  /** Staff has it: messages written here are staff messages. */
  readonly isWithStaff: boolean;
}

/** One conversation with its message field. */
export function ConversationView({ gateway, conversation, state, isWithStaff }: ConversationViewProps): ReactNode {
  const [draft, setDraft] = useState<Draft>({ text: '', version: 0 });
  useEffect(preloadMarkdown, []);

  const actions = useMemo((): TurnActions => {
    const write = (text: string): void => setDraft(({ version }) => ({ text, version: version + 1 }));
    return {
      onRetry: (key) => conversation.retry(key),
      onStop: (key) => void conversation.stop(key),
      onReconnect: () => conversation.reconnect(),
      onWithdraw: (key) => {
        const message = conversation.withdraw(key);
        if (message !== null) write(message.text);
      },
    };
  }, [conversation]);

  const running = state.turns.find(isUnderWay);
  return (
    <>
      <ConversationBody
        state={state}
        actions={actions}
        onLoad={() => void conversation.open()}
        onContact={(contact) => conversation.playContact(contact)}
        onOpening={(text) => setDraft(({ version }) => ({ text, version: version + 1 }))}
      />
      {isWithStaff ? (
        <StaffComposer onAnswer={async (text, key) => conversation.answerAsPerson(text, key)} />
      ) : (
        <Composer
          gateway={gateway}
          draft={draft}
          placeholder={placeholderFor(state)}
          disabled={state.load.at !== 'ready' || state.isCustomers}
          busy={state.turns.some((turn) => isUnderWay(turn) || turn.state.at === 'sending')}
          stopping={running?.stopping === true}
          onSend={(text, attachments) => conversation.send({ text, attachments })}
          onStop={running === undefined ? null : () => void conversation.stop(running.key)}
        />
      )}
    </>
  );
}

function placeholderFor({ agent, sender, isCustomers }: ConversationState): string {
  if (isCustomers) return 'A customer’s conversation: take it over to answer.';
  return agent === 'cs' ? `Write as ${sender === null ? 'a customer' : readSenderName(sender)}…` : 'Write to your agent…';
}

interface ConversationBodyProps {
  readonly state: ConversationState;
  readonly actions: TurnActions;
  readonly onLoad: () => void;
  readonly onContact: Parameters<typeof NewConversation>[0]['onContact'];
  readonly onOpening: (text: string) => void;
}

function ConversationBody({ state, actions, onLoad, onContact, onOpening }: ConversationBodyProps): ReactNode {
  switch (state.load.at) {
    case 'loading': {
      return (
        <p role="status" className="flex flex-1 items-center justify-center gap-2 text-sm text-muted-foreground">
          <SpinnerIcon /> Loading the conversation…
        </p>
      );
    }
    case 'failed': {
      const { failure } = state.load;
      return (
        <div role="alert" className="flex flex-1 flex-col items-center justify-center gap-3 p-6 text-center">
          <p className="max-w-md">{explain(failure)}</p>
          {failure.status !== 404 && <Button onClick={onLoad}>Try again</Button>}
        </div>
      );
    }
    case 'ready': {
      if (state.turns.length > 0) return <Transcript turns={state.turns} actions={actions} />;
      return (
        <NewConversation
          agent={state.agent}
          contact={{ sender: state.sender, channel: state.channel }}
          onContact={onContact}
          onOpening={onOpening}
        />
      );
    }
  }
}
