import type { Tool } from '@concierge/agent';
import { failpoint } from '@concierge/runtime';
import type { ChosenModel } from './turn/prepare-turn.ts';

/** The tools with the named places between intent, call and result where tests break the process. */
export function withToolFailpoints(tools: readonly Tool[]): Tool[] {
  return tools.map((tool) => ({
    ...tool,
    run: async (input, context) => {
      await failpoint('tool.after-intent');
      const output = await tool.run(input, context);
      await failpoint('tool.before-result');
      return output;
    },
  }));
}

/** A model with the named place after a whole reply, before anything of it is journaled. */
export function withModelFailpoint(model: ChosenModel): ChosenModel {
  return {
    ref: model.ref,
    facts: model.facts,
    isContextOverflow: (error) => model.isContextOverflow(error),
    async *stream(request, signal) {
      for await (const event of model.stream(request, signal)) {
        if (event.type === 'end') await failpoint('model.after-reply');
        yield event;
      }
    },
  };
}
