import type { Answer } from './answer.ts';
import type { Deployment } from './deployment.ts';

/** What every command is built with. */
export interface CommandContext {
  readonly deployment: Deployment;
  /** Hands the command's answer to its printer. */
  readonly answer: (answer: Answer) => void;
}
