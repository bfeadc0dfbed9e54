import { argv } from 'node:process';
import { openIndex } from '@concierge/index';
import { armFailpoints } from '@concierge/runtime';
import { Tenants } from '../src/tenants.ts';
import { silentLog as log } from './support.ts';

/** A separate process that learns what a contact is called, until its fail point stops it. */
const [, , dataDir = '', sender = '', displayName = '', failpoints = ''] = argv;
armFailpoints(failpoints);
const index = await openIndex({ databaseUrl: undefined, dataDir, log });
const tenants = new Tenants({ dataDir, index, keySecret: 'a secret for tests', secretsKey: 'a key for secrets', log });
await (await tenants.open('acme')).contacts.remember({ sender, displayName });
await index.close();
