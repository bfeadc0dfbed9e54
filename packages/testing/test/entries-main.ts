import { createLog } from '@concierge/runtime';
import { z } from 'zod';

/** Logs each entry of the argument as a service does, or with redaction off: as it stands. */
const { entries, redacts } = z
  .object({ entries: z.array(z.record(z.string(), z.unknown())), redacts: z.boolean() })
  .parse(JSON.parse(process.argv[2] ?? ''));
const log = createLog({ service: 'gateway', level: 'info' });
for (const entry of entries) {
  if (redacts) log.info(entry, 'a request');
  else process.stdout.write(`${JSON.stringify(entry)}\n`);
}
