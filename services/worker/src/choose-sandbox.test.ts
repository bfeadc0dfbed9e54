import { describe, expect, it } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { SandboxUnavailable, type Sandbox, type Sandboxes } from '@concierge/sandbox';
import { chooseSandbox, type SandboxMakers } from './choose-sandbox.ts';

const log = createLog({ service: 'test', level: 'silent' });

/** Sandboxes of a machine that has what they need, or lacks `missing`. */
class OneKind implements Sandboxes {
  readonly kind: Sandboxes['kind'];
  isClosed = false;
  readonly #missing: string | undefined;

  constructor(kind: Sandboxes['kind'], missing?: string) {
    this.kind = kind;
    this.#missing = missing;
  }

  open(): Sandbox {
    throw new SandboxUnavailable('nothing runs in this test');
  }

  async reap(): Promise<number> {
    return Promise.resolve(0);
  }

  async check(): Promise<void> {
    if (this.#missing !== undefined) throw new SandboxUnavailable(this.#missing);
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

function machine(missing: { docker?: string; bubblewrap?: string }): { made: OneKind[]; makers: SandboxMakers } {
  const made: OneKind[] = [];
  const make = (kind: Sandboxes['kind']) => () => {
    const sandboxes = new OneKind(kind, missing[kind]);
    made.push(sandboxes);
    return sandboxes;
  };
  return { made, makers: { docker: make('docker'), bubblewrap: make('bubblewrap') } };
}

describe('choosing the sandbox', () => {
  it('takes Docker where it works, and does not even make the other', async () => {
    const { made, makers } = machine({});
    expect(await chooseSandbox({ kind: 'auto' }, makers, log)).toEqual({ sandboxes: made[0], isUsable: true, reason: 'docker' });
    expect(made.map(({ kind }) => kind)).toEqual(['docker']);
  });

  it('takes bubblewrap where Docker does not work, reports why, and closes what it does not use', async () => {
    const { made, makers } = machine({ docker: 'no engine answers' });
    expect(await chooseSandbox({ kind: 'auto' }, makers, log)).toEqual({
      sandboxes: made[1],
      isUsable: true,
      reason: 'bubblewrap; no engine answers',
    });
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  });

  it('takes none where neither works, and names what is missing of both', async () => {
    const { made, makers } = machine({ docker: 'no engine answers', bubblewrap: 'bwrap is not installed' });
    expect(await chooseSandbox({ kind: 'auto' }, makers, log)).toEqual({
      sandboxes: undefined,
      isUsable: false,
      reason: 'no engine answers; bwrap is not installed',
    });
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  it('keeps the one that was named, though it does not work yet', async () => {
    const { made, makers } = machine({ docker: 'no engine answers' });
    expect(await chooseSandbox({ kind: 'docker' }, makers, log)).toEqual({
      sandboxes: made[0],
      isUsable: false,
      reason: 'no engine answers',
    });
    expect(made[0]?.isClosed).toBe(false);
  });

  it('makes nothing when it is switched off', async () => {
    const { made, makers } = machine({});
    expect((await chooseSandbox({ kind: 'off' }, makers, log)).sandboxes).toBeUndefined();
    expect(made).toEqual([]);
  });

  it('does not take a broken program for a machine without a sandbox', async () => {
    const { makers } = machine({});
    const broken = (): Sandboxes => {
      throw new TypeError('broken');
    };
    await expect(chooseSandbox({ kind: 'auto' }, { ...makers, docker: broken }, log)).rejects.toThrow(TypeError);
  });
});
