import { argv } from 'node:process';
import { openIndex } from '@concierge/index';
import { armFailpoints, connectRedis } from '@concierge/runtime';
import { Tenants, toLogsFolder } from '@concierge/tenant';
import { silentLog as log, testSecrets } from '@concierge/testing';
import { eraseContact, Lanes, ProcessLog, SharedLogs, Turns, WakeupQueue } from '../src/index.ts';

/** A separate process that erases a contact, until its fail point stops it. */
const [, , redisUrl = '', dataDir = '', sender = '', failpoints = ''] = argv;
armFailpoints(failpoints);
const redis = connectRedis({ url: redisUrl, role: 'worker', log });
const [folder, lanes] = [toLogsFolder(dataDir), new Lanes(redis)];
const turns = new Turns({ redis, lanes, wakeupQueue: new WakeupQueue(redis, log), accepted: new ProcessLog({ redis, folder, log }), log });
const index = await openIndex({ databaseUrl: undefined, dataDir, log });
const tenants = new Tenants({ dataDir, index, ...testSecrets, logged: new SharedLogs({ redis, lanes, folder }), log });
const patient = { answerMs: 300_000, stopTimeoutMs: 120_000 };
await eraseContact({ redis, turns, logsFolder: folder, ...patient }, await tenants.open('acme'), { sender });
