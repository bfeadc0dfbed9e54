import { startService } from '@concierge/runtime/process';
import { readConfig } from './config.ts';
import { wire } from './wire.ts';

await startService({ name: 'ui', readConfig, load: () => wire });
