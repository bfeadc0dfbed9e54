import type { Log, SandboxSettings } from '@concierge/runtime';
import { SandboxUnavailable, type Sandboxes } from '@concierge/sandbox';

/** Bound in wire.ts; called only for what is tried. */
export type SandboxMakers = Readonly<Record<Sandboxes['kind'], () => Sandboxes>>;

export interface ChosenSandbox {
  /** Undefined: commands answer with an error. They never run outside of a sandbox. */
  readonly sandboxes: Sandboxes | undefined;
  /** Whether commands could run when it was chosen. */
  readonly isUsable: boolean;
  /** Which it is, or why there is none, for operators. */
  readonly reason: string;
}

/**
 * What SANDBOX names, else Docker, else bubblewrap, else none. One that was named is kept even when it cannot be used
 * yet: an engine that is still starting is there for the first command. Logged once; the caller closes `sandboxes`.
 */
export async function chooseSandbox(settings: Pick<SandboxSettings, 'kind'>, makers: SandboxMakers, log: Log): Promise<ChosenSandbox> {
  const chosen = await choose(settings.kind, makers);
  const fields = { sandbox: chosen.sandboxes?.kind ?? 'off', reason: chosen.reason };
  if (chosen.isUsable) log.info(fields, 'commands run in a sandbox');
  else log.warn(fields, 'commands cannot run: there is no usable sandbox');
  return chosen;
}

async function choose(kind: SandboxSettings['kind'], makers: SandboxMakers): Promise<ChosenSandbox> {
  switch (kind) {
    case 'off': {
      return { sandboxes: undefined, reason: 'switched off by SANDBOX=off', isUsable: false };
    }
    case 'docker':
    case 'bubblewrap': {
      const sandboxes = makers[kind]();
      const missing = await whatIsMissing(sandboxes);
      return { sandboxes, reason: missing ?? kind, isUsable: missing === undefined };
    }
    case 'auto': {
      return firstUsable(makers);
    }
  }
}

async function firstUsable(makers: SandboxMakers): Promise<ChosenSandbox> {
  const reasons: string[] = [];
  for (const kind of ['docker', 'bubblewrap'] as const) {
    const sandboxes = makers[kind]();
    const missing = await whatIsMissing(sandboxes);
    if (missing === undefined) return { sandboxes, reason: [kind, ...reasons].join('; '), isUsable: true };
    reasons.push(missing);
    await sandboxes.close();
  }
  return { sandboxes: undefined, reason: reasons.join('; '), isUsable: false };
}

async function whatIsMissing(sandboxes: Sandboxes): Promise<string | undefined> {
  try {
    await sandboxes.check();
    return undefined;
  } catch (error) {
    if (error instanceof SandboxUnavailable) return error.message;
    throw error;
  }
}
