import { RedisCluster, ReplicatedRedis, type System } from '@concierge/testing';
import { ChaosRig, startSystem } from '../rig.ts';
import type { Place, Verdict } from '../scenarios.ts';

/** The master dies under load, and sentinels put its replica in its place: without what was not replicated yet. */
export async function runFailover({ seed, tree }: Place, verdict: Verdict): Promise<void> {
  await using redis = await ReplicatedRedis.start();
  const load = { turns: 300, conversations: 24, tenants: 3, overMs: 24_000, burst: 3 };
  const start = async (modelUrl: string): Promise<System> => await startSystem(modelUrl, { tree, replicatedRedis: redis });
  await using rig = await ChaosRig.start({ seed, load, start });
  const meanwhile = async (): Promise<void> => {
    await rig.quiet(load.overMs / 3);
    rig.evidence.fault({ atMs: Date.now(), kind: 'redis-kill', target: 'redis' });
    await redis.killMaster();
  };
  await rig.run({ meanwhile, wholeLoad: true, deadlineMs: 600_000 });
  await verdict(await rig.finish(), rig);
}

/** One master of a cluster dies under load, then another freezes: a replica takes the place of each. */
export async function runCluster({ seed, tree }: Place, verdict: Verdict): Promise<void> {
  await using redis = await RedisCluster.start();
  const load = { turns: 300, conversations: 24, tenants: 9, overMs: 36_000, burst: 3 };
  const start = async (modelUrl: string): Promise<System> => await startSystem(modelUrl, { tree, replicatedRedis: redis });
  await using rig = await ChaosRig.start({ seed, load, start });
  const [killed, frozen] = rig.random.shuffled([0, 1, 2]);
  const meanwhile = async (): Promise<void> => {
    await rig.quiet(load.overMs / 4);
    rig.evidence.fault({ atMs: Date.now(), kind: 'redis-kill', target: 'redis' });
    await redis.killMaster(killed ?? 0);
    await rig.quiet(load.overMs / 4);
    rig.evidence.fault({ atMs: Date.now(), kind: 'redis-frozen', target: 'redis' });
    await redis.freezeMaster(frozen ?? 1);
  };
  await rig.run({ meanwhile, wholeLoad: true, deadlineMs: 600_000 });
  redis.thaw(frozen ?? 1);
  await verdict(await rig.finish(), rig);
}
