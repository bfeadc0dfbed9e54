// Which test files Jest begins with.
import Sequencer from '@jest/test-sequencer';

/**
 * Files that take minutes though they are short. Jest, which knows no durations in a fresh checkout, begins with what
 * is largest; these would come last, and run alone while one processor has nothing to do.
 */
export const longestFiles = [
  'services/worker/test/commands.int.test.ts',
  'services/gateway/test/processes.int.test.ts',
  'packages/acceptance/test/retrieval.int.test.ts',
  'services/worker/test/answered-turns.int.test.ts',
  'packages/sandbox/test/docker.int.test.ts',
  'packages/sandbox/test/bubblewrap.int.test.ts',
  'packages/acceptance/contract/subagents.test.ts',
  'packages/acceptance/contract/events.test.ts',
  'packages/acceptance/e2e/screens.test.ts',
  'packages/acceptance/e2e/screen-states.test.ts',
];

const isLong = ({ path }) => longestFiles.some((file) => path.endsWith(`/${file}`));

/** The longest files first, then the others in Jest's order. */
// eslint-disable-next-line import/no-default-export -- what Jest takes
export default class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).toSorted((one, other) => Number(isLong(other)) - Number(isLong(one)));
  }
}
