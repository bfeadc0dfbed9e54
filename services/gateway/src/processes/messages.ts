import { z } from 'zod';

/** How much of something one process has, or all others have: connections, streams of a key, bytes of bodies. */
const Counts = z.array(z.tuple([z.string(), z.number()]));

/** As prom-client renders a registry for aggregation. */
export const Metrics = z.array(z.looseObject({ name: z.string(), type: z.string() }));

export type Counts = z.output<typeof Counts>;
export type Metrics = z.output<typeof Metrics>;

/** From a process to its primary. */
export const FromProcess = z.union([
  z.object({ ready: z.literal(true) }),
  /** `report`: numbered, so that its answer is recognised. */
  z.object({ counts: Counts, report: z.number() }),
  z.object({ gather: z.number() }),
  z.object({ measured: Metrics }),
]);
export type FromProcess = z.input<typeof FromProcess>;

/** From the primary to a process. */
export const FromPrimary = z.union([
  z.object({ others: Counts }),
  z.object({ counted: z.number() }),
  z.object({ measure: z.literal(true) }),
  z.object({ gathered: z.number(), metrics: z.array(Metrics) }),
  z.object({ stop: z.literal(true) }),
  z.object({ tidyUp: z.literal(true) }),
]);
export type FromPrimary = z.input<typeof FromPrimary>;
