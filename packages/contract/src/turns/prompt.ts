import { z } from 'zod';
import { ContactId } from './chat.ts';
import { FileVersionId } from '../tenants/file-version.ts';
import { AgentName } from '../tenants/tenant.ts';
import { PromptPart } from './turn.ts';
import { PROMPT_PARTS_MAX } from './turn-output.ts';

export const PartChange = z.enum(['same', 'new', 'changed', 'gone']);
export type PartChange = z.infer<typeof PartChange>;

const PreviewPart = PromptPart.omit({ digest: true }).extend({
  path: z.string().nullable().meta({ description: 'The file, where it is one of the owner’s own.' }),
  tokensBefore: z.int().nonnegative().nullable().meta({ description: 'In the prompt of the last turn; null: it was not in it.' }),
  change: PartChange.nullable().meta({
    description: 'Since the prompt of the last turn; null: there is none to compare with, or it is not compared (tools, history).',
  }),
  version: FileVersionId.nullable().meta({
    description:
      'Of a part that has changed or is gone: the kept version of the file of this name that the last turn had, whose text is at `/api/file-history/{path}`. Null: there is none, or it is not kept any more.',
  }),
});

/** GET /api/prompt: what the model will see at the next turn, by part; lengths and no texts. */
export const PromptPreview = z
  .object({
    agent: AgentName,
    contact_id: ContactId.nullable().meta({ description: 'The conversation; null: of a new one.' }),
    model: z.string().nullable().meta({ description: 'As `provider/model`; null: the deployment’s default.' }),
    comparedWith: z
      .object({ turnId: z.string(), at: z.iso.datetime() })
      .nullable()
      .meta({ description: 'The last turn whose prompt is known; null: none.' }),
    tokens: z.int().nonnegative().meta({ description: 'All parts together, estimated by length.' }),
    parts: z
      .array(PreviewPart)
      .max(2 * PROMPT_PARTS_MAX)
      .meta({ description: 'In the order of the prompt; parts that are gone stand last.' }),
    unusable: z
      .array(z.object({ name: z.string(), reason: z.string() }))
      .max(PROMPT_PARTS_MAX)
      .meta({ description: 'Files that no prompt can have, and why.' }),
  })
  .meta({ id: 'PromptPreview' });
export type PromptPreview = z.infer<typeof PromptPreview>;
