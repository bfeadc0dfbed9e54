import type { ChannelSettings } from '@concierge/contract';

interface Addressee {
  readonly team_id?: string | undefined;
  readonly context_team_id?: string | undefined;
  readonly api_app_id?: string | undefined;
}

/**
 * Whether it is for this workspace, and for this app where the binding names one. The outermost ids decide: those
 * inside, of the event and its authorizations, may be another workspace's. An app of a whole organisation has its
 * workspace in `context_team_id`.
 */
export function isOurs({ team_id, context_team_id, api_app_id }: Addressee, settings: ChannelSettings['channel_d']): boolean {
  const isOfOrganisation = team_id === undefined || team_id.startsWith('E');
  if ((isOfOrganisation ? context_team_id : team_id) !== settings.teamId) return false;
  return settings.appId === undefined || api_app_id === settings.appId;
}
