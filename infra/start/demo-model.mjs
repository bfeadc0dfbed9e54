// The demo model as a process of its own, run from source under Node 24.
import { startDemoModel } from '@concierge/model/demo';

const { url, close } = await startDemoModel({ host: '127.0.0.1', port: Number(process.env.DEMO_MODEL_PORT) });
process.stdout.write(`demo model at ${url}\n`);
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void close().finally(() => process.exit(0)));
