// Installs the packages and does nothing else: a layer of the image that a change of the code does not touch.
import { bootstrap } from './bootstrap.mjs';

await bootstrap(import.meta.url, async () => undefined);
