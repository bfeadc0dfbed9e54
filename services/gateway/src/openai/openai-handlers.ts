import type { Turns } from '@concierge/turn';
import { awaitReply } from '../chat/await-reply.ts';
import { streamed, type Handlers } from '../http/call.ts';
import { acceptOpenAi, type AcceptOpenAiOptions, type OpenAiCall } from './accept-openai.ts';
import { ChatCompletionChunks, chatCompletionOf } from './chat-completion.ts';
import { conversationOf, conversationOfResponse } from './conversation-of.ts';
import { refuseUnsupportedCompletion, refuseUnsupportedResponse } from './refuse-unsupported.ts';
import { encodingOf, type ReplyEncoder } from './reply-encoder.ts';
import { ResponseEvents, responseOf } from './response.ts';
import { readResponseInput, readChatMessages } from './openai-messages.ts';

export interface OpenAiOptions extends AcceptOpenAiOptions {
  readonly turns: Pick<Turns, 'find'>;
}

/** A turn in the format of OpenAI's APIs: other bodies in, other encoders out, the same turn in between. */
export function openAiHandlers(options: OpenAiOptions): Pick<Handlers, 'createChatCompletion' | 'createResponse'> {
  return {
    createChatCompletion: async (call) => {
      const { body } = call;
      refuseUnsupportedCompletion(body);
      const facts = await acceptOpenAi(options, call, { said: readChatMessages(body), param: 'messages', contactId: conversationOf(body) });
      if (body.stream !== true)
        return { kind: 'answer', status: 200, json: chatCompletionOf(facts, await awaitReply(options.replies, call, facts.turnId)) };
      const encoder = new ChatCompletionChunks(facts, { withUsage: body.stream_options?.include_usage === true });
      return stream(options, call, { turnId: facts.turnId, encoder });
    },
    createResponse: async (call) => {
      const { body, caller } = call;
      refuseUnsupportedResponse(body);
      const contactId = await conversationOfResponse(options, caller, body);
      const accepted = await acceptOpenAi(options, call, { said: readResponseInput(body), param: 'input', contactId });
      const { instructions = null, metadata, previous_response_id: previousResponseId = null, user = null } = body;
      const facts = { ...accepted, instructions, metadata: metadata ?? {}, previousResponseId, user };
      if (body.stream !== true)
        return { kind: 'answer', status: 200, json: responseOf(facts, await awaitReply(options.replies, call, facts.turnId)) };
      return stream(options, call, { turnId: facts.turnId, encoder: new ResponseEvents(facts) });
    },
  };
}

interface StreamedReply {
  readonly turnId: string;
  readonly encoder: ReplyEncoder;
}

function stream(
  { replies: { eventStreams } }: OpenAiOptions,
  { response, caller }: OpenAiCall,
  { turnId, encoder }: StreamedReply,
): typeof streamed {
  const { scope, key } = caller;
  eventStreams.serve(response, { scope, turnId, keyId: key.id, after: null, encoding: encodingOf(encoder) });
  return streamed;
}
