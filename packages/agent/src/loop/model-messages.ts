import type { SessionMessage, UploadRef, UserMessage } from '@concierge/contract';
import type { ModelMessage } from '@concierge/model';
import type { Conversation } from './conversation.ts';

/** Images that the model is shown, by upload id: loaded before the loop starts, since the session keeps references only. */
export type ShownImages = ReadonlyMap<string, { readonly mediaType: string; readonly base64: string }>;

type UserContent = Extract<ModelMessage, { role: 'user' }>['content'];
type ContentPart = Exclude<UserContent, string>[number];

/** The conversation as the model is sent it: the summary of what was moved out first, then every message as it was sent before. */
export function modelMessages(conversation: Pick<Conversation, 'summary' | 'messages'>, images: ShownImages): ModelMessage[] {
  const messages: ModelMessage[] = [];
  if (conversation.summary !== null) messages.push({ role: 'user', content: summaryText(conversation.summary.text) });
  for (const message of conversation.messages) {
    // Providers refuse an assistant message with neither text nor calls.
    if (message.role === 'assistant' && message.text === '' && message.toolCalls === undefined) continue;
    messages.push(modelMessage(message, images));
  }
  return messages;
}

function summaryText(text: string): string {
  return `<conversation_summary>\nWhat was said before, in short. It was written by this service to save room; the user did not type it.\n\n${text}\n</conversation_summary>`;
}

function modelMessage(message: SessionMessage, images: ShownImages): ModelMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: userContent(message, images) };
    case 'assistant':
      return { role: 'assistant', text: message.text, toolCalls: message.toolCalls ?? [] };
    case 'tool':
      return { role: 'tool', callId: message.callId, output: message.pruned === true ? prunedNote(message.output) : message.output };
  }
}

/** What stands for an old tool result that was cut to save room. */
export function prunedNote(output: string): string {
  return `[An earlier result of ${String(output.length)} characters was removed to save room. Call the tool again if it is needed.]`;
}

function userContent(message: UserMessage, images: ShownImages): UserContent {
  const attached = message.attachments?.filter((upload) => upload.type.startsWith('image/')) ?? [];
  if (attached.length === 0) return message.sent;
  return [{ type: 'text', text: message.sent }, ...attached.map((upload) => imagePart(upload, images))];
}

function imagePart(upload: UploadRef, images: ShownImages): ContentPart {
  const image = images.get(upload.id);
  if (image === undefined) return { type: 'text', text: `[The image "${upload.name}" (${upload.id}) is not shown.]` };
  return { type: 'image', ...image };
}
