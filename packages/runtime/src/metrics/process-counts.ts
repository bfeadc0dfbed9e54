/**
 * What a process has counted since it started, like the stalls of its event loop: all connections of a process count
 * into the same numbers.
 */
export const processCounts = { redisConnection: 0, redisCommand: 0, index: 0 };

/** For each use of the index that failed for the state of its database. */
export function countIndexError(): void {
  processCounts.index += 1;
}
