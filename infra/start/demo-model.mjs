// The demo model as a process of its own, run from source under Node 24.
import { startDemoModel } from '@concierge/model/demo';

const model = await startDemoModel({ host: '127.0.0.1', port: Number(process.env.DEMO_MODEL_PORT) });
process.stdout.write(`demo model at ${model.url}\n`);
process.send?.({ ready: true });
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void model.close().finally(() => process.exit(0)));
