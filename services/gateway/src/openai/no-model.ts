import { AppError } from '@concierge/contract';

/** Known to OpenAI's clients as `model_not_found`. */
export function noModel(name: string): AppError {
  const message = `there is no agent ${JSON.stringify(name.slice(0, 80))} for this key; GET /v1/models lists those there are`;
  return new AppError('not_found', undefined, { errors: [{ path: 'model', message }] });
}
