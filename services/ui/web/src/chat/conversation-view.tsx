import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { isUnderWay } from '../../../src/chat/chat-turn.ts';
import type { Conversation } from '../../../src/chat/conversation.ts';
import { readSenderName, type ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { Composer, type Draft } from './composer.tsx';
import { SpinnerIcon } from '../parts/icons.tsx';
import { preloadMarkdown } from './lazy-markdown.tsx';
import { NewConversation } from './new-conversation.tsx';
import { StaffComposer, UnsentAnswer, useStaffAnswer } from './staff-composer.tsx';
import { useForks, type ForkActions } from './use-forks.ts';
import { TurnWaitsProvider } from '../sessions/turn-waits.tsx';
import type { Words } from '../words/en.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { Transcript } from './transcript.tsx';
import type { TurnActions } from './turn-card.tsx';

export interface ConversationViewProps {
  readonly gateway: GatewayClient;
  readonly conversation: Conversation;
  readonly state: ConversationState;
  /** Staff has it: messages written here are staff messages. */
  readonly isWithStaff: boolean;
  /** The key may do more than read. */
  readonly mayWrite: boolean;
  /** The key may read the list of turns. */
  readonly mayList: boolean;
}

/** One conversation with its message field. */
export function ConversationView({ gateway, conversation, state, isWithStaff, mayWrite, mayList }: ConversationViewProps): ReactNode {
  const words = useWords().chat;
  const [draft, setDraft] = useState<Draft>({ text: '', attachments: [], comesBack: false, version: 0 });
  useEffect(preloadMarkdown, []);

  const actions = useMemo((): TurnActions => {
    return {
      onRetry: (key) => conversation.retry(key),
      onReconnect: () => conversation.reconnect(),
      onSendNow: (key) => void conversation.queue.sendNow(key),
      onEditQueued: (key, text) => {
        void conversation.queue.edit(key, text).then((isSaved) => {
          if (!isSaved) setDraft(({ version }) => ({ text, attachments: [], comesBack: true, version: version + 1 }));
        });
      },
      onTakeBack: (key) => {
        const message = conversation.queue.takeBack(key);
        if (message === null) return;
        const { text, attachments } = message;
        setDraft(({ version }) => ({ text, attachments, comesBack: true, version: version + 1 }));
      },
    };
  }, [conversation]);

  const answer = useStaffAnswer(async (text, key) => conversation.answerAsPerson(text, key));
  const isStaffs = isWithStaff && mayWrite;
  const forks = useForks(gateway, conversation, state);
  const running = state.turns.find(isUnderWay);
  return (
    <>
      <ConversationBody
        state={state}
        actions={actions}
        forks={mayWrite ? forks.actions : null}
        mayWrite={mayWrite}
        mayList={mayList}
        onLoad={() => void conversation.open()}
        onContact={(contact) => conversation.playContact(contact)}
        onEarlier={() => void conversation.showEarlier()}
        onOpening={(text) => setDraft(({ version }) => ({ text, attachments: [], comesBack: false, version: version + 1 }))}
      />
      {forks.problem !== null && (
        <p role="alert" className="mx-auto mb-2 w-full max-w-3xl px-5 text-sm text-danger">
          {forks.problem}
        </p>
      )}
      {!isStaffs && <UnsentAnswer answer={answer} />}
      <Composer
        gateway={gateway}
        draft={draft}
        inItsPlace={isStaffs ? <StaffComposer answer={answer} /> : null}
        takesFocus={answer.text === ''}
        placeholder={mayWrite ? placeholderFor(state, words.composer) : words.readOnly}
        disabled={state.load.at !== 'ready' || state.isCustomers || !mayWrite}
        busy={state.turns.some((turn) => isUnderWay(turn) || turn.state.at === 'sending')}
        stopping={running?.stopping === true}
        onSend={(text, attachments) => conversation.send({ text, attachments })}
        onStop={running === undefined || !mayWrite ? null : () => void conversation.stop(running.key)}
      />
    </>
  );
}

function placeholderFor({ agent, sender, isCustomers }: ConversationState, words: Words['chat']['composer']): string {
  if (isCustomers) return words.customers;
  if (agent !== 'cs') return words.toAgent;
  return sender === null ? words.asCustomer : words.asSender(readSenderName(sender));
}

interface ConversationBodyProps {
  readonly state: ConversationState;
  readonly actions: TurnActions;
  readonly forks: ForkActions | null;
  readonly mayWrite: boolean;
  readonly mayList: boolean;
  readonly onLoad: () => void;
  readonly onEarlier: () => void;
  readonly onContact: Parameters<typeof NewConversation>[0]['onContact'];
  readonly onOpening: (text: string) => void;
}

function ConversationBody({ state, actions, forks, mayWrite, mayList, ...on }: ConversationBodyProps): ReactNode {
  const explain = useExplain();
  const words = useWords();
  switch (state.load.at) {
    case 'loading': {
      return (
        <p role="status" className="flex flex-1 items-center justify-center gap-2 text-sm text-muted-foreground">
          <SpinnerIcon /> {words.chat.loading}
        </p>
      );
    }
    case 'failed': {
      const { failure } = state.load;
      return (
        <div role="alert" className="flex flex-1 flex-col items-center justify-center gap-3 p-6 text-center">
          <p className="max-w-md">{explain(failure)}</p>
          {failure.status !== 404 && <Button onClick={on.onLoad}>{words.parts.retry}</Button>}
        </div>
      );
    }
    case 'ready': {
      if (state.turns.length > 0)
        return (
          <TurnWaitsProvider contactId={state.contactId} turns={state.turns} mayList={mayList}>
            <Transcript
              turns={state.turns}
              actions={actions}
              forks={forks}
              mayWrite={mayWrite}
              onEarlier={state.earlier === null ? null : on.onEarlier}
            />
          </TurnWaitsProvider>
        );
      return (
        <NewConversation
          agent={state.agent}
          contact={{ sender: state.sender, channel: state.channel }}
          onContact={on.onContact}
          onOpening={on.onOpening}
        />
      );
    }
  }
}
