/** A document was got, but nothing can be read from it. The message is fit for a model. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}
