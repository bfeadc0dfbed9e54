import { z } from 'zod';
import { ContactId, UploadId } from './chat.ts';
import { limitedRecord } from '../values/values.ts';
import { limits } from '../limits.ts';

/*
 * The OpenAI-compatible endpoints. Their clients send many fields, newer ones every month: what is not named here is
 * ignored. What is named is read by us, or refused because leaving it out would change what the caller gets.
 */

const text = z.string().max(limits.openAiTextMaxCharacters);
/** Base64, a data URL of it, or an address. */
const bytes = z.string().max(limits.openAiBodyMaxBytes);
const optionalBytes = bytes.nullish();
const fileName = z.string().max(limits.fileNameMaxCharacters).nullish();
/** A word of the protocol. */
const word = z.string().max(100);

/** Continues a conversation: its contact_id, plain or as an object. */
const Conversation = z.union([ContactId, z.looseObject({ id: ContactId })], {
  error: 'must be a contact_id, or an object with it as its id',
});

/** A file of the tenant, as POST /api/uploads answered it. */
const StoredFileId = UploadId.nullish().meta({ description: 'The id of an upload (POST /api/uploads).' });

const ChatPart = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.literal('text'), text }),
    z.looseObject({ type: z.literal('refusal'), refusal: text }),
    z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: bytes }) }),
    z.looseObject({
      type: z.literal('file'),
      file: z.looseObject({ file_data: optionalBytes, file_id: StoredFileId, filename: fileName }),
    }),
  ],
  { error: 'must be a part of type text, image_url or file' },
);
export type ChatPart = z.infer<typeof ChatPart>;

export const ChatMessage = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z
    .union([text, z.array(ChatPart).max(limits.openAiPartsMax)], {
      error: 'must be a string or a list of parts of type text, image_url or file',
    })
    .nullish(),
  name: word.nullish(),
});
export type ChatMessage = z.infer<typeof ChatMessage>;

/** As many and as large as OpenAI takes them: they are sent back. */
const Metadata = limitedRecord(z.string().max(64), z.string().max(512), 16);

const Label = z.string().max(limits.senderMaxCharacters);

const common = {
  model: z
    .string()
    .min(1)
    .max(limits.modelNameMaxCharacters)
    .meta({ description: 'The name of an agent: `admin`, `cs`, or one of the tenant\u2019s own.' }),
  stream: z.boolean().nullish(),
  user: Label.nullish().meta({
    description: 'The end user: one conversation is kept for each.',
  }),
  safety_identifier: Label.nullish().meta({ description: 'Newer name of `user`, which goes before it.' }),
  conversation: Conversation.nullish().meta({ description: 'Continues this conversation: the `conversation.id` of an earlier answer.' }),
  metadata: Metadata.nullish().meta({ description: '`contact_id` means the same as `conversation`.' }),
  tools: z.array(z.unknown()).max(limits.openAiOtherMax).nullish().meta({ description: 'Refused: agents have their own tools.' }),
  tool_choice: z.unknown().optional(),
};

/** POST /v1/chat/completions. */
export const ChatCompletionBody = z
  .looseObject({
    ...common,
    messages: z.array(ChatMessage).min(1).max(limits.openAiMessagesMax),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    n: z.int().nullish(),
    functions: z.array(z.unknown()).max(limits.openAiOtherMax).nullish(),
    function_call: z.unknown().optional(),
    logprobs: z.boolean().nullish(),
    audio: z.unknown().optional(),
    modalities: z.array(word).max(10).nullish(),
    response_format: z.looseObject({ type: word }).nullish(),
    stop: z.union([text, z.array(text).max(100)], { error: 'must be a string or a list of strings' }).nullish(),
  })
  .meta({ id: 'ChatCompletionBody' });
export type ChatCompletionBody = z.infer<typeof ChatCompletionBody>;

const InputPart = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.enum(['input_text', 'output_text', 'text']), text }),
    z.looseObject({ type: z.literal('refusal'), refusal: text }),
    z.looseObject({ type: z.literal('input_image'), image_url: optionalBytes, file_id: StoredFileId }),
    z.looseObject({
      type: z.literal('input_file'),
      file_data: optionalBytes,
      file_id: StoredFileId,
      file_url: optionalBytes,
      filename: fileName,
    }),
  ],
  { error: 'must be a part of type input_text, input_image or input_file' },
);
export type InputPart = z.infer<typeof InputPart>;

const InputMessage = z.looseObject({
  type: z.literal('message').optional(),
  role: z.enum(['system', 'developer', 'user', 'assistant']),
  content: z.union([text, z.array(InputPart).max(limits.openAiPartsMax)], {
    error: 'must be a string or a list of parts of type input_text, input_image or input_file',
  }),
});
export type InputMessage = z.infer<typeof InputMessage>;

const OtherItem = z.looseObject({ type: word.refine((type) => type !== 'message', 'is not a message that can be read') });

export const InputItem = z.union([InputMessage, OtherItem], { error: 'must be a message with a role and a content' });
export type InputItem = z.infer<typeof InputItem>;

/** POST /v1/responses. */
export const ResponseBody = z
  .looseObject({
    ...common,
    input: z.union([text, z.array(InputItem).min(1).max(limits.openAiMessagesMax)], { error: 'must be a string or a list of messages' }),
    instructions: text.nullish(),
    previous_response_id: word.nullish().meta({ description: 'Continues the conversation of that response, at its end.' }),
    background: z.boolean().nullish(),
    prompt: z.unknown().optional(),
    text: z.looseObject({ format: z.looseObject({ type: word }).nullish() }).nullish(),
    top_logprobs: z.int().nullish(),
  })
  .meta({ id: 'ResponseBody' });
export type ResponseBody = z.infer<typeof ResponseBody>;

const ConversationRef = z.object({ id: ContactId }).meta({ description: 'The contact_id: given as `conversation`, it continues here.' });

const CompletionUsage = z.object({
  prompt_tokens: z.int().nonnegative(),
  completion_tokens: z.int().nonnegative(),
  total_tokens: z.int().nonnegative(),
});
export type CompletionUsage = z.infer<typeof CompletionUsage>;

export const completionFinishReasons = ['stop', 'length', 'content_filter'] as const;

/** The whole answer of POST /v1/chat/completions. */
export const ChatCompletion = z
  .object({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int(),
    model: z.string(),
    conversation: ConversationRef,
    choices: z.array(
      z.object({
        index: z.literal(0),
        message: z.object({ role: z.literal('assistant'), content: z.string(), refusal: z.null() }),
        logprobs: z.null(),
        finish_reason: z.enum(completionFinishReasons),
      }),
    ),
    usage: CompletionUsage,
  })
  .meta({ id: 'ChatCompletion' });
export type ChatCompletion = z.infer<typeof ChatCompletion>;

const OutputText = z.object({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.never()),
  logprobs: z.array(z.never()),
});
export type OutputText = z.infer<typeof OutputText>;

const OutputMessage = z.object({
  id: z.string(),
  type: z.literal('message'),
  status: z.enum(['in_progress', 'completed', 'incomplete']),
  role: z.literal('assistant'),
  content: z.array(OutputText),
});
export type OutputMessage = z.infer<typeof OutputMessage>;

/** The whole answer of POST /v1/responses, and what its events carry. */
export const ResponseObject = z
  .object({
    id: z.string(),
    object: z.literal('response'),
    created_at: z.int(),
    status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
    background: z.literal(false),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.object({ reason: z.enum(['max_output_tokens', 'content_filter', 'cancelled']) }).nullable(),
    instructions: z.string().nullable(),
    max_output_tokens: z.null(),
    metadata: z.record(z.string(), z.string()),
    model: z.string(),
    conversation: ConversationRef,
    output: z.array(OutputMessage),
    parallel_tool_calls: z.literal(true),
    previous_response_id: z.string().nullable(),
    store: z.literal(true),
    temperature: z.null(),
    text: z.object({ format: z.object({ type: z.literal('text') }) }),
    tool_choice: z.literal('auto'),
    tools: z.array(z.never()),
    top_p: z.null(),
    truncation: z.literal('disabled'),
    usage: z
      .object({
        input_tokens: z.int().nonnegative(),
        input_tokens_details: z.object({ cached_tokens: z.int().nonnegative() }),
        output_tokens: z.int().nonnegative(),
        output_tokens_details: z.object({ reasoning_tokens: z.int().nonnegative() }),
        total_tokens: z.int().nonnegative(),
      })
      .nullable(),
    user: z.string().nullable(),
  })
  .meta({ id: 'ResponseObject' });
export type ResponseObject = z.infer<typeof ResponseObject>;

/** An agent, as GET /v1/models shows it. */
export const ModelObject = z
  .object({
    id: z.string(),
    object: z.literal('model'),
    created: z.int().meta({ description: 'Always 0: agents have no date.' }),
    owned_by: z.string().meta({ description: '`concierge` for the built-in agents, else the tenant.' }),
  })
  .meta({ id: 'ModelObject' });
export type ModelObject = z.infer<typeof ModelObject>;

/** Every error below /v1. */
export const OpenAiError = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum(['invalid_request_error', 'rate_limit_error', 'server_error']),
      param: z.string().nullable(),
      code: z.string(),
    }),
  })
  .meta({ id: 'OpenAiError' });
export type OpenAiError = z.infer<typeof OpenAiError>;
