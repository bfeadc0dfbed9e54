import { useSyncExternalStore } from 'react';
import type { Conversation } from '../../../src/chat/conversation.ts';
import type { ConversationState } from '../../../src/chat/conversation-state.ts';

const none = (): null => null;

/** The conversation's state, painted at most once per frame however fast the words come. */
export function useConversationState(conversation: Conversation): ConversationState;
export function useConversationState(conversation: Conversation | null): ConversationState | null;
export function useConversationState(conversation: Conversation | null): ConversationState | null {
  return useSyncExternalStore((listener) => {
    let frame = 0;
    const leave = conversation?.subscribe(() => {
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        listener();
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      leave?.();
    };
  }, conversation?.snapshot ?? none);
}
