import { AppError, type ChatCompletionBody, type InvalidField, type ResponseBody } from '@concierge/contract';

type Check = readonly [param: string, asked: boolean, message: string];

const builtInTools = 'are not supported: an agent has its own tools, which run on our side';
const plainText = 'only text can be answered';

/**
 * What a caller would miss if it were ignored, unlike a temperature.
 * @throws AppError `invalid_request` naming each field
 */
export function refuseUnsupportedCompletion(body: ChatCompletionBody): void {
  refuse([
    ['n', (body.n ?? 1) !== 1, 'must be 1: an agent answers once'],
    ['tools', isGiven(body.tools) && body.tool_choice !== 'none', builtInTools],
    ['functions', isGiven(body.functions) && body.function_call !== 'none', builtInTools],
    ['logprobs', body.logprobs === true, 'are not supported'],
    ['audio', body.audio != null, plainText],
    ['modalities', body.modalities?.some((modality) => modality !== 'text') ?? false, plainText],
    ['response_format', isStructured(body.response_format), 'must be of type text: an agent\u2019s answer cannot be bound to a schema'],
    ['stop', isGiven(body.stop), 'is not supported: an agent\u2019s answer is not cut'],
  ]);
}

/** The same for the Responses API. @throws AppError `invalid_request` naming each field */
export function refuseUnsupportedResponse(body: ResponseBody): void {
  const both = body.conversation != null && body.previous_response_id != null;
  refuse([
    ['tools', isGiven(body.tools) && body.tool_choice !== 'none', builtInTools],
    ['background', body.background === true, 'is not supported: a turn goes on without a waiting client, and GET /api/turns/{id} shows it'],
    ['prompt', body.prompt != null, 'is not supported: prompts are files of the agent'],
    ['text.format', isStructured(body.text?.format), 'must be of type text: an agent\u2019s answer cannot be bound to a schema'],
    ['top_logprobs', (body.top_logprobs ?? 0) > 0, 'are not supported'],
    ['previous_response_id', both, 'cannot be given together with conversation'],
  ]);
}

function refuse(checks: readonly Check[]): void {
  const errors: InvalidField[] = checks.filter(([, asked]) => asked).map(([path, , message]) => ({ path, message }));
  if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
}

function isGiven(value: string | readonly unknown[] | null | undefined): boolean {
  return value != null && value.length > 0;
}

function isStructured(format: { readonly type: string } | null | undefined): boolean {
  return format != null && format.type !== 'text';
}
