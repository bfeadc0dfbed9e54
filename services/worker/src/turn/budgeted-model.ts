import type { ModelFacts, ModelUsage } from '@concierge/contract';
import type { Model, ModelRequest } from '@concierge/model';
import type { TurnBudget } from '@concierge/turn';

/** A model and what its calls cost. */
interface PricedModel extends Model {
  readonly ref: string;
  readonly facts: ModelFacts;
}

/** Of text and of JSON, roughly: what a call takes is known when it ends. */
const CHARACTERS_PER_TOKEN = 4;
/** Most replies are shorter. */
const REPLY_TOKENS = 1024;
const NANOS_PER_PRICE = 1000;

/** The same model, whose calls are reserved before and counted after: those of the loop and those of a compaction. */
export function withBudget(model: PricedModel, budget: Pick<TurnBudget, 'reserve'>): PricedModel {
  return {
    ref: model.ref,
    facts: model.facts,
    isContextOverflow: (error) => model.isContextOverflow(error),
    async *stream(request, signal) {
      const call = await budget.reserve(expectedAmount(request, model.facts));
      let usage: ModelUsage | undefined;
      try {
        for await (const event of model.stream(request, signal)) {
          // Before the end is heard: what follows it in the turn may be the turn's own end.
          if (event.type === 'end') ({ usage } = event);
          yield event;
        }
      } finally {
        await call.settle(usage);
      }
    },
  };
}

/** What a call takes is reserved roughly: a call that takes more may pass the limit, and is the last one to do so. */
function expectedAmount(
  { system, messages, tools }: ModelRequest,
  { price, maxOutputTokens }: PricedModel['facts'],
): { readonly tokens: number; readonly nanos: number } {
  const characters = system.length + countCharacters(messages) + (tools.length > 0 ? JSON.stringify(tools).length : 0);
  const input = Math.ceil(characters / CHARACTERS_PER_TOKEN);
  const output = Math.min(maxOutputTokens, REPLY_TOKENS);
  // Prices are per million tokens.
  const nanos = price === undefined ? 0 : Math.ceil((input * price.input + output * price.output) * NANOS_PER_PRICE);
  return { tokens: input + output, nanos };
}

function countCharacters(messages: ModelRequest['messages']): number {
  let characters = 0;
  for (const message of messages) {
    if (message.role === 'user') characters += typeof message.content === 'string' ? message.content.length : countParts(message.content);
    else if (message.role === 'tool') characters += message.output.length;
    else
      characters += message.toolCalls.reduce(
        (sum, call) => sum + call.arguments.length,
        message.text.length + (message.reasoning?.length ?? 0),
      );
  }
  return characters;
}

/** An image counts for some thousand characters, whatever its bytes. */
const IMAGE_CHARACTERS = 4000;

function countParts(parts: Exclude<Extract<ModelRequest['messages'][number], { role: 'user' }>['content'], string>): number {
  return parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : IMAGE_CHARACTERS), 0);
}
