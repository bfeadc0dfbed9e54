import { z } from 'zod';
import { PromptPart, TurnView } from './turn.ts';

export const spanKinds = ['received', 'waited', 'prompt', 'model', 'tool', 'compaction', 'saved', 'sent', 'delivered', 'read'] as const;
export type SpanKind = (typeof spanKinds)[number];

/** One thing that happened to a turn. What is not known of it is left out. */
export const TraceSpan = z
  .object({
    kind: z.enum(spanKinds).meta({
      description:
        '`received`: from the arrival of its request to its acceptance on disk. `waited`: for one reason. `prompt`: files and tools were read. `model`, `tool`, `compaction`: steps. `saved`: the conversation contains it. `sent`, `delivered`, `read`: one part of a message on a channel.',
    }),
    name: z.string().meta({ description: 'Its origin, the reason of a wait, the model, the tool or the channel; may be empty.' }),
    at: z.iso.datetime(),
    durationMs: z.int().nonnegative().nullable().meta({ description: 'Null: a moment, or a wait that goes on.' }),
    isError: z.boolean(),
    within: z.string().optional().meta({ description: 'The tool whose command made this call.' }),
    inputTokens: z.int().nonnegative().optional(),
    outputTokens: z.int().nonnegative().optional(),
    cachedInputTokens: z.int().nonnegative().optional(),
    costUsd: z.number().nonnegative().optional(),
    firstTextMs: z.int().nonnegative().optional().meta({ description: 'From the beginning of the call to its first text.' }),
    failedAttempts: z.int().positive().optional().meta({ description: 'Attempts at this model call that failed before it was answered.' }),
    fallbackFor: z.string().optional().meta({ description: 'The model that was to answer.' }),
    parts: z
      .array(PromptPart)
      .max(64)
      .optional()
      .meta({ description: 'Of a prompt: its files, skills, tools and history, with their tokens, estimated by their length.' }),
    deliveryId: z.string().optional(),
    part: z.int().positive().optional().meta({ description: 'Of a message in several parts: which of them.' }),
    tries: z.int().positive().optional(),
  })
  .meta({ id: 'TraceSpan' });
export type TraceSpan = z.infer<typeof TraceSpan>;

/** Spans of one turn are at most as many as its steps and messages allow; the first ones are kept. */
export const TRACE_SPANS_MAX = 1000;

/** GET /api/turns/{id}/trace: the life of a turn, without a word of its texts. */
export const TurnTrace = TurnView.omit({ steps: true, deliveries: true, input: true })
  .extend({
    spans: z.array(TraceSpan).max(TRACE_SPANS_MAX).meta({
      description: 'In order of time. A turn of an earlier version lacks what was not kept of it.',
    }),
  })
  .meta({ id: 'TurnTrace' });
export type TurnTrace = z.infer<typeof TurnTrace>;
