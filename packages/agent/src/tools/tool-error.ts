/** A failure that the model should read and can act on. Its message becomes the result. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}
