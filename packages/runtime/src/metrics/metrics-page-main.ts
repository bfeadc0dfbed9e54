import { writeFile } from 'node:fs/promises';
import { metricsPage } from './metrics-page.ts';

await writeFile(new URL('../../../../docs/metrics.md', import.meta.url), metricsPage());
