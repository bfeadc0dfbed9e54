import {
  AppError,
  type ChatCompletionBody,
  type ChatMessage,
  type ChatPart,
  type InputItem,
  type InputMessage,
  type InputPart,
  type ResponseBody,
} from '@concierge/contract';

/** Where the bytes of a file are: in the request, in base64 (or as a data URL); in an earlier upload; at an address. */
export type FileSource = { readonly data: string } | { readonly id: string } | { readonly url: string };

/** A file as a request has it. */
export type GivenFile = FileSource & { readonly kind: 'image' | 'file'; readonly name: string | null; readonly at: string };

/** Text and files in the order in which they were given. */
export type Piece = string | GivenFile;

/** One message of the caller's conversation, from either API. */
export interface ReceivedMessage {
  readonly role: 'instructions' | 'user' | 'assistant' | 'tool';
  readonly pieces: readonly Piece[];
}

/** A message of the conversation; instructions of the application are none. */
export type Line = ReceivedMessage & { readonly role: 'user' | 'assistant' | 'tool' };

export function toLines(said: readonly ReceivedMessage[]): Line[] {
  return said.filter((entry): entry is Line => entry.role !== 'instructions');
}

const roles = {
  system: 'instructions',
  developer: 'instructions',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'tool',
} as const satisfies Record<ChatMessage['role'], ReceivedMessage['role']>;

/** @throws AppError `invalid_request` for a file that is not there as data */
export function readChatMessages({ messages }: Pick<ChatCompletionBody, 'messages'>): ReceivedMessage[] {
  return messages.map(({ role, content }, index) => {
    if (typeof content === 'string') return { role: roles[role], pieces: [content] };
    const pieces = (content ?? []).map((part, position) => readPart(part, `messages.${String(index)}.content.${String(position)}`));
    return { role: roles[role], pieces };
  });
}

/**
 * @throws AppError `invalid_request` for a file that is not there as data, and for items that only a model's caller can
 * answer
 */
export function readResponseInput({ input, instructions }: Pick<ResponseBody, 'input' | 'instructions'>): ReceivedMessage[] {
  const first: ReceivedMessage[] = instructions == null || instructions === '' ? [] : [{ role: 'instructions', pieces: [instructions] }];
  if (typeof input === 'string') return [...first, { role: 'user', pieces: [input] }];
  return [...first, ...input.flatMap((item, index) => readInputItem(item, `input.${String(index)}`))];
}

function readInputItem(item: InputItem, at: string): ReceivedMessage[] {
  if (isMessage(item)) {
    const { role, content } = item;
    if (typeof content === 'string') return [{ role: roles[role], pieces: [content] }];
    return [{ role: roles[role], pieces: content.map((part, position) => readInputPart(part, `${at}.content.${String(position)}`)) }];
  }
  // A client may send back what it received, including reasoning of other models.
  if (item.type === 'reasoning') return [];
  throw refused(`${at}.type`, `${item.type} is not supported: agents call their own tools and take messages only`);
}

function isMessage(item: InputItem): item is InputMessage {
  return 'role' in item && 'content' in item;
}

function readPart(part: ChatPart, at: string): Piece {
  switch (part.type) {
    case 'text': {
      return part.text;
    }
    case 'refusal': {
      return part.refusal;
    }
    case 'image_url': {
      return { kind: 'image', name: null, ...readSource({ url: part.image_url.url }, `${at}.image_url.url`) };
    }
    case 'file': {
      const { file_data: data, file_id: id, filename } = part.file;
      return { kind: 'file', name: filename ?? null, ...readSource({ data, id }, `${at}.file.file_data`) };
    }
  }
}

function readInputPart(part: InputPart, at: string): Piece {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      return part.text;
    }
    case 'refusal': {
      return part.refusal;
    }
    case 'input_image': {
      return { kind: 'image', name: null, ...readSource({ url: part.image_url, id: part.file_id }, `${at}.image_url`) };
    }
    case 'input_file': {
      const { file_data: data, file_id: id, file_url: url, filename } = part;
      return { kind: 'file', name: filename ?? null, ...readSource({ data, id, url }, `${at}.${url == null ? 'file_data' : 'file_url'}`) };
    }
  }
}

interface Source {
  /** Base64, or a data URL. */
  readonly data?: string | null | undefined;
  readonly url?: string | null | undefined;
  readonly id?: string | null | undefined;
}

function readSource({ data, url, id }: Source, at: string): FileSource & { readonly at: string } {
  if (id != null) return { id, at };
  if (data != null) return { data, at };
  if (url?.slice(0, 5).toLowerCase() === 'data:') return { data: url, at };
  if (url != null && /^https?:\/\//iu.test(url.slice(0, 8))) return { url, at };
  if (url != null) throw refused(at, 'must be a data: URL, or one with https:');
  throw refused(at, 'is missing');
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
