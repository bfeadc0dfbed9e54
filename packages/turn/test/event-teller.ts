import { argv, env } from 'node:process';
import { openIndex } from '@concierge/index';
import { armFailpoints, connectRedis, createLog } from '@concierge/runtime';
import { Tenants } from '@concierge/tenant';
import { testSecrets } from '@concierge/testing';
import { Outbound } from '@concierge/web';
import { EventQueue, eventFetchPolicy, EventSender, EventWorker, WebhookEvents } from '../src/index.ts';
import { turnEnded } from './test-events.ts';

/** A separate process that emits one webhook event and sends it, until its fail point stops it. */
const [, , redisUrl = '', dataDir = '', allow = '', failpoints = ''] = argv;
const log = createLog({ service: 'test', level: env['TEST_LOG'] ?? 'silent' });
armFailpoints(failpoints);
const redis = connectRedis({ url: redisUrl, role: 'worker', log });
const index = await openIndex({ databaseUrl: undefined, dataDir, log });
const tenants = new Tenants({ dataDir, index, ...testSecrets, log });
const queue = new EventQueue(redis, log);
const sender = new EventSender({ fetch: new Outbound({ allow: [allow] }).fetcher(eventFetchPolicy), explain: String });
new EventWorker({ queue, tenants, sender, log }).start();
await new WebhookEvents({ queue, log }).emit(await tenants.open('acme'), turnEnded('t_1'));
