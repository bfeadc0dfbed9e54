import { appNameOf, type AppChannel, type BusyPolicy, type TenantSettings, type TurnInput } from '@concierge/contract';

/** Whoever writes in pieces writes the next one within this. */
const DEBOUNCE_MS = 1500;

export type BusyRule = Pick<TurnInput, 'busy' | 'holdMs'>;

/** What tenant.json says of the channel, under either of its names. Media are not waited with: what goes with them came before. */
export function busyRuleOf({ channels = {} }: Pick<TenantSettings, 'channels'>, channel: AppChannel, hasMedia: boolean): BusyRule {
  const {
    busy = 'collect',
    debounceMs = DEBOUNCE_MS,
  }: { readonly busy?: BusyPolicy | 'collect' | undefined; readonly debounceMs?: number | undefined } =
    channels[channel] ?? channels[appNameOf(channel)] ?? {};
  return busy === 'collect' ? { busy, holdMs: hasMedia ? 0 : debounceMs } : { busy };
}
