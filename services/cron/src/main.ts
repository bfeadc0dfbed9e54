import { startService } from '@concierge/runtime';
import { readConfig } from './config.ts';
import { wire } from './wire.ts';

await startService({ name: 'cron', readConfig, load: () => wire });
