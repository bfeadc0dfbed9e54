import { ModernFakeTimers } from '@jest/fake-timers';
import { TestEnvironment } from 'jest-environment-node';

/** Jest's own parts run in the realm that it makes for each file, the tests in Node's: what they fake is there. */
// eslint-disable-next-line import/no-default-export -- what Jest takes
export default class NativeEnvironment extends TestEnvironment {
  #globals;

  constructor(options, context) {
    super(options, context);
    const { projectConfig } = options;
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    this.#globals = projectConfig.globals;
  }

  async setup() {
    await super.setup();
    Object.assign(globalThis, this.#globals);
  }

  async teardown() {
    for (const name of Object.keys(this.#globals)) delete globalThis[name];
    await super.teardown();
  }
}
