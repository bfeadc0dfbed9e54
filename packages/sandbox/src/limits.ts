import { limits } from '@concierge/contract';

/**
 * What one turn's sandbox may use. Where something is counted for each command or process instead, the adapter's README
 * says so.
 */
export interface SandboxLimits {
  /** Processes and threads at the same time. */
  readonly pids: number;
  /** All processes and /tmp together; there is no swap. */
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly tmpBytes: number;
  /** Size of any one file. */
  readonly fileBytes: number;
  /** The limit of each process. */
  readonly openFiles: number;
  /** The kept size of one command's output; the middle of longer output is left out. */
  readonly outputBytes: number;
}

const MiB = 1024 * 1024;

export const defaultLimits: SandboxLimits = {
  pids: 256,
  memoryBytes: 1024 * MiB,
  cpus: 1,
  tmpBytes: 256 * MiB,
  fileBytes: 512 * MiB,
  openFiles: 1024,
  outputBytes: limits.toolOutputModelMaxBytes,
};
