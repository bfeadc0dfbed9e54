import { z } from 'zod';

/** What stands in a sentence, by name. */
export const SaidParams = z.record(z.string(), z.string()).meta({
  description: 'What stands in the sentence, by name. `reason` is text of a provider or of a library, and has no other language.',
});

/** A sentence of the service in English, with the name and the parts by which a client says it in another language. */
export interface Said<Code extends string = string> {
  readonly message: string;
  readonly code: Code;
  readonly params: Readonly<Record<string, string>>;
}
