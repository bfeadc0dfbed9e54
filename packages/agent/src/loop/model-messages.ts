import type { AssistantMessage, SessionMessage, SessionSummary, ToolCall, ToolMessage, UploadRef, UserMessage } from '@concierge/contract';
import type { ModelMessage } from '@concierge/model';
import { heartbeatBlock, sentText } from '../prompt/user-message.ts';
import type { Conversation, KnownMessages } from './conversation.ts';

/** Images that the model is shown, by upload id: loaded for each call, since the session keeps references only. */
export type ShownImages = ReadonlyMap<string, { readonly mediaType: string; readonly base64: string }>;

type UserContent = Extract<ModelMessage, { role: 'user' }>['content'];
type ContentPart = Exclude<UserContent, string>[number];

/**
 * The conversation as the model is sent it: the summary of what was moved out first, then every message as it was sent
 * before. `known` makes it the same object as before where no images are with it.
 */
export function modelMessages(
  conversation: Pick<Conversation, 'summary' | 'messages'>,
  images: ShownImages,
  known: KnownMessages = new Map(),
): ModelMessage[] {
  const sent = new SentMessages(images, known);
  if (conversation.summary !== null) sent.addSummary(conversation.summary);
  for (const message of conversation.messages) {
    // Providers refuse an assistant message with neither text nor calls.
    if (message.role === 'assistant' && message.text === '' && message.toolCalls === undefined) continue;
    sent.addMessage(message);
  }
  return sent.all();
}

function summaryText({ text, heartbeat = '' }: SessionSummary): string {
  const shown = heartbeat === '' ? '' : `\n\n${heartbeatBlock(heartbeat)}`;
  return `<conversation_summary>\nWhat was said before, in short. It was written by this service to save room; the user did not type it.\n\n${text}\n</conversation_summary>${shown}`;
}

/** Built up front to back, so that what is added at the end changes nothing before it: prompt caches match. */
class SentMessages {
  readonly #images: ShownImages;
  readonly #known: KnownMessages;
  readonly #sent: ModelMessage[] = [];
  readonly #shownIds = new Set<string>();
  /**
   * Images that the tools of a reply showed. Results are text only, and nothing may stand between them: the images
   * follow the last result.
   */
  #shown: ContentPart[] = [];

  constructor(images: ShownImages, known: KnownMessages) {
    this.#images = images;
    this.#known = known;
  }

  addSummary(summary: SessionSummary): void {
    this.#add(this.#known.get(summary) ?? this.#keep(summary, { role: 'user', content: summaryText(summary) }));
  }

  addMessage(message: SessionMessage): void {
    this.#add(this.#known.get(message) ?? this.#keep(message, this.#write(message)));
    if (message.role === 'tool') this.#addImages(message);
  }

  all(): ModelMessage[] {
    this.#addShown();
    return this.#sent;
  }

  #add(message: ModelMessage): void {
    if (message.role !== 'tool') this.#addShown();
    this.#sent.push(message);
  }

  #keep(from: SessionMessage | SessionSummary, message: ModelMessage): ModelMessage {
    // Which images are shown with it changes.
    if (message.role !== 'user' || typeof message.content === 'string') this.#known.set(from, message);
    return message;
  }

  #write(message: SessionMessage): ModelMessage {
    switch (message.role) {
      case 'user':
        return { role: 'user', content: this.#userContent(message) };
      case 'assistant':
        return {
          role: 'assistant',
          text: writeText(message),
          toolCalls: message.toolCalls ?? [],
          ...(message.model !== undefined && { model: message.model }),
          ...(message.reasoning !== undefined && { reasoning: message.reasoning }),
        };
      case 'tool':
        return { role: 'tool', callId: message.callId, output: message.pruned === true ? prunedNote(message.output) : message.output };
    }
  }

  #addImages({ name, pruned, attachments = [] }: ToolMessage): void {
    if (pruned === true) return;
    for (const upload of attachments) {
      this.#shown.push({ type: 'text', text: `[Shown by ${name}; the user did not send it: "${upload.name}" (${upload.id})]` });
      this.#shown.push(this.#imagePart(upload));
    }
  }

  #addShown(): void {
    if (this.#shown.length === 0) return;
    this.#sent.push({ role: 'user', content: this.#shown });
    this.#shown = [];
  }

  #userContent(message: UserMessage): UserContent {
    const attached = message.attachments?.filter((upload) => upload.type.startsWith('image/')) ?? [];
    const text = sentText(message);
    if (attached.length === 0) return text;
    return [{ type: 'text', text }, ...attached.map((upload) => this.#imagePart(upload))];
  }

  /** An image is sent once, however often it is attached or viewed. */
  #imagePart(upload: UploadRef): ContentPart {
    const image = this.#images.get(upload.id);
    if (image === undefined) return { type: 'text', text: `[The image "${upload.name}" (${upload.id}) is not shown.]` };
    if (this.#shownIds.has(upload.id)) return { type: 'text', text: `[The image "${upload.name}" (${upload.id}) is shown above.]` };
    this.#shownIds.add(upload.id);
    return { type: 'image', ...image };
  }
}

/** The text is an assistant's message, which a contact cannot forge: what a contact writes is never one. */
function writeText({ text, by }: AssistantMessage): string {
  return by === undefined ? text : `${PERSON_WROTE}\n\n${text}`;
}

const PERSON_WROTE =
  '[Note of the service: a person of the team wrote this message in your place, while the conversation was handed over to them. The contact has read it as theirs. You never write such a note yourself.]';

/** The note that replaces an old tool result to save room. */
export function prunedNote(output: string): string {
  return `[An earlier result of ${String(output.length)} characters was removed to save room. Call the tool again if it is needed.]`;
}

/** How much a session may hold before it is made smaller. */
export interface ContextBudget {
  /** Tokens that prompt, tools and messages may use together: the context window without what the answer needs. */
  readonly limitTokens: number;
  /** Characters of the system prompt and the tool descriptions. */
  overheadCharacters(): number;
  /** The same in tokens, estimated; the provider's figures already include them. */
  overheadTokens(): number;
  estimateTokens(text: string): number;
}

/**
 * Messages and characters of a session file, whatever the model could take: every turn reads, writes and sends them
 * all.
 */
export const sessionBounds = { maxMessages: 240, keepMessages: 60, maxCharacters: 1_500_000 } as const;

/** What providers charge for a picture of common size. */
export const IMAGE_TOKENS = 1100;
export const MESSAGE_OVERHEAD_TOKENS = 6;
/** A token is at least one byte, and a UTF-16 unit at most three. */
const TOKENS_PER_CHARACTER_MAX = 3;

/** What the tokens of a conversation are counted by. */
export type CountedConversation = Pick<Conversation, 'messages' | 'summary' | 'contextTokens'>;

/** False when a conversation is far below every limit, whatever its text: most are, which takes no estimate to see. */
export function mayNeedRoom({ messages, summary, contextTokens }: CountedConversation, budget: ContextBudget): boolean {
  const overhead = (budget.overheadCharacters() + writeSummary({ summary }).length) * TOKENS_PER_CHARACTER_MAX;
  const counted = contextTokens ?? { tokens: overhead, messages: 0 };
  let characters = 0;
  let tokensMax = counted.tokens;
  for (const [index, message] of messages.entries()) {
    const size = countCharacters(message);
    characters += size;
    if (index >= counted.messages)
      tokensMax += size * TOKENS_PER_CHARACTER_MAX + countImages(message) * IMAGE_TOKENS + MESSAGE_OVERHEAD_TOKENS;
  }
  return tokensMax > budget.limitTokens || characters > sessionBounds.maxCharacters || messages.length > sessionBounds.maxMessages;
}

/** Characters that a message puts into the session file, roughly. */
export function countCharacters(message: SessionMessage): number {
  switch (message.role) {
    case 'user':
      return message.text.length + message.sent.length + (message.heartbeat?.length ?? 0);
    case 'assistant':
      return (message.toolCalls ?? []).reduce(
        (sum, call) => sum + call.arguments.length + countExtra(call),
        message.text.length + (message.reasoning?.length ?? 0),
      );
    case 'tool':
      return message.output.length;
  }
}

/** Characters that a call's extra takes; signatures are long. */
function countExtra({ extra }: ToolCall): number {
  return extra === undefined ? 0 : JSON.stringify(extra).length;
}

/** The summary as it counts: with the HEARTBEAT that the model is shown with it. */
export function writeSummary({ summary }: Pick<Conversation, 'summary'>): string {
  return summary === null ? '' : summary.text + (summary.heartbeat ?? '');
}

export function countImages(message: SessionMessage): number {
  if (message.role === 'assistant' || message.attachments === undefined) return 0;
  if (message.role === 'tool' && message.pruned === true) return 0;
  return message.attachments.filter((upload) => upload.type.startsWith('image/')).length;
}
