import type { ChannelCheckCode, FileProblemCode, FindingCode } from '@concierge/contract';

/** A sentence of the service, with the name and the parts by which it is said in another language. */
export interface CodedSentence {
  readonly message: string;
  readonly code?: string | undefined;
  readonly params?: Readonly<Record<string, string>> | undefined;
}

/** A sentence in the page’s language, by its code from a catalog; undefined where that does not know the code. */
export function sayCode(
  catalog: Readonly<Record<string, string>>,
  { code, params = {} }: Omit<CodedSentence, 'message'>,
): string | undefined {
  if (code === undefined || !Object.hasOwn(catalog, code)) return undefined;
  return catalog[code]?.replaceAll(/\{(?<name>\w+)\}/gu, (_all, name: string) => params[name] ?? '');
}

/** Sentences that the service has a code for. `{name}` is one of the sentence's own params. */
export const codedEn: Readonly<Record<ChannelCheckCode | FileProblemCode | FindingCode, string>> = {
  binding_enabled: 'It is enabled.',
  binding_receive_only: 'Messages come in, and none can be sent.',
  binding_disabled: 'It is disabled.',
  binding_broken: 'It cannot be used: connect it again.',
  credentials_valid: 'They are those of {account}.',
  credentials_refused: 'The provider does not take them.',
  credentials_mismatch: 'They are those of another account.',
  credentials_unreachable: 'They could not be checked.',
  webhook_brings: 'The provider brings messages to {url}.',
  webhook_not_taken: 'The provider did not take the address {url}.',
  webhook_not_said: 'The provider did not say where it brings messages.',
  webhook_nowhere: 'The provider brings messages nowhere. It should be {expected}: connect it again, or enter the address at the provider.',
  webhook_elsewhere:
    'The provider brings messages to {url}. It should be {expected}: connect it again, or enter the address at the provider.',
  webhook_kinds_missing: 'The provider was not asked for {kinds}: connect it again, or enter the address at the provider.',
  webhook_failing: 'The provider could not bring {count} messages.',
  agent_name_taken: 'The name {name} belongs to a built-in agent.',
  agent_file_name: 'The name of the file must be lower-case letters, digits and inner hyphens, at most 64.',
  skill_folder_name: 'The name of the folder must be lower-case letters, digits and single inner hyphens, at most 64.',
  skill_file_missing: 'It has no SKILL.md.',
  skill_name_differs: 'front matter: the name is {name}, the folder is {folder}.',
  file_unreadable: 'The file cannot be read.',
  front_matter_opening: 'The front matter must open with a line of just ---.',
  front_matter_unclosed: 'The front matter is not closed by a line of just ---.',
  front_matter_too_long: 'The front matter is too long.',
  front_matter_language: 'Only YAML front matter is read.',
  front_matter_yaml: 'The front matter is not YAML.',
  field_type: '{field} is missing, or is not of the type {expected}.',
  field_too_big: '{field} is too long or too large: at most {maximum}.',
  field_too_small: '{field} is too short or too small: at least {minimum}.',
  field_format: '{field} has not the form that it must have.',
  field_multiple: '{field} must be a multiple of {divisor}.',
  field_unknown: '{field} has fields that are not known: {keys}.',
  field_kind: '{field} is none of the kinds that it may be.',
  field_key: '{field} has a name in it that cannot be used.',
  field_element: '{field} has an entry that cannot be used.',
  field_value: '{field} must be one of: {values}.',
  field_rule: '{field} cannot be used.',
  redis_version: 'Redis {version}.',
  redis_slots: '{slots} slots on {masters} masters.',
  redis_slots_away: '{count} slots are away, and their tenants wait.',
  redis_kept: 'Its append-only file is on.',
  redis_not_kept: 'Its append-only file is off: a restart of it loses live streams.',
  clocks_agree: 'All are within {seconds} s of Redis’ clock.',
  clock_ahead: '{place}: {seconds} s ahead of Redis’ clock.',
  clock_behind: '{place}: {seconds} s behind Redis’ clock.',
  index_in: 'It is in {database}.',
  connections_unlimited: 'SQLite has no limit.',
  connections_enough: '{processes} processes may open {needed} of {available} connections to PostgreSQL.',
  connections_short:
    '{processes} processes may open {needed} connections to PostgreSQL, and {available} are there (max_connections {max}, {reserved} reserved, {others} in use by other clients): lower DATABASE_POOL or raise max_connections.',
  workers_none: 'None is alive.',
  workers_alive: '{count} alive.',
  workers_stopping: '{count} of them stopping.',
  workers_drained: '{count} drained by an operator.',
  turns_wait: 'Accepted turns wait.',
  demo_answers: 'The demo model answers.',
  default_model: 'The model is {model}, unless a tenant or an agent names another one.',
  email_sent: 'Owners get e-mails about unanswered handoffs.',
  email_off: 'SMTP_URL is not set for cron: no e-mail is sent to owners.',
  versions_alone: '{own}: no process announces itself.',
  versions_same: '{list}.',
  versions_differ: 'They differ, as during an upgrade: {list}.',
  no_worker_to_ask: 'No worker runs that could be asked.',
  no_cron_to_ask: 'No cron runs that could be asked.',
  no_redis_to_ask: 'Redis cannot be asked.',
};
