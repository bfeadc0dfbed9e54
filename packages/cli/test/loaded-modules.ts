import { registerHooks } from 'node:module';
import { writeSync } from 'node:fs';

// Preloaded: reports on descriptor 3 which modules a command has loaded.
registerHooks({
  load(url, context, nextLoad) {
    writeSync(3, `${url}\n`);
    return nextLoad(url, context);
  },
});
