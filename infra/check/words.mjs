// `node infra/check/words.mjs`: fails on words that docs/glossary.md replaced, in code, comments, documents and names.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** Words of sentences, in any case, and what stands in their place. */
const prose = {
  whoever: 'name the subject',
  somebody: 'name the subject',
  'let go of': 'release, stop',
  'lets go of': 'releases, stops',
  laid: 'enqueued, written, restored',
  relaid: 'restored',
  doorbell: 'wake-up',
  doorbells: 'wake-ups',
  ripe: 'due',
  ripens: 'is due',
  retell: 'replay',
  retelling: 'replay',
  untold: 'pending',
  lender: 'capability factory',
  lenders: 'capability factories',
  hindrance: 'blocked reason',
};

/** Identifiers, as they were spelled. */
const identifiers = {
  accountId: 'tenantId',
  AppChannel: 'MessagingChannel',
  AttachedTools: 'McpTools',
  Doorbells: 'WakeupQueue',
  Happening: 'WebhookEventInput',
  HandoffCalls: 'HandoffNotifications',
  HandoffDesk: 'HandoffRequests',
  HandoffWatch: 'HandoffReconciler',
  HeldFolder: 'FolderHandle',
  LookPolicy: 'StatCachePolicy',
  MentionedPlaces: 'UrlAllowlist',
  OutgoingEvents: 'WebhookEvents',
  OwnTool: 'BuiltInTool',
  PlainBindings: 'CredentialDropFiles',
  Ripener: 'DebounceTimer',
  Sweeper: 'TurnReconciler',
  ToolBox: 'TurnTools',
  ToolSet: 'ToolRegistry',
  TurnTally: 'TurnUsage',
  TurnVoice: 'TurnOutput',
  breakOff: 'closeOpenCalls',
  holdMs: 'debounceMs',
  makeRoom: 'compact',
  ripeIn: 'dueInMs',
  sendPersonsWords: 'deliverStaffMessage',
};

/** Where an old word is the subject, is stored, or is not ours. */
const exempt = [
  /^docs\/(?:spec\/|glossary\.md$)/u,
  /^CHANGELOG\.md$/u,
  /^infra\/check\/words/u,
  /^packages\/acceptance\/(?:retrieval|bench\/memory)\//u,
  /\/fixtures\//u,
  // What models and people read as text, and the picture in one decision page.
  /^packages\/(?:agent\/src\/(?:prompt|tools)|tenant\/starter)\//u,
  /^docs\/(?:tools\.md$|decisions\/0002-)/u,
  /^pnpm-lock\.yaml$/u,
];
/** Names that a stored file, a key's payload or the specification has. */
const stored = {
  accountId:
    /^packages\/(?:tenant\/(?:src\/keys\/|src\/tenants\.ts|src\/inbox\/|test\/)|contract\/src\/turns\/turn\.ts)|^docs\/decisions\/|^packages\/acceptance\//u,
};

const escape = (text) => text.replaceAll(' ', '[ \\n]+(?:(?://|\\*|--|#) ?)?');
const rules = [
  // bounded-expression: built from the words of this file
  ...Object.entries(prose).map(([word, instead]) => ({ word, instead, pattern: new RegExp(`\\b${escape(word)}\\b`, 'giu') })),
  // bounded-expression: as above
  ...Object.entries(identifiers).map(([word, instead]) => ({ word, instead, pattern: new RegExp(`\\b${word}\\b`, 'gu') })),
];

/** One line for each place, as `file:line: …`. */
export function findOldWords(file, text) {
  if (exempt.some((pattern) => pattern.test(file))) return [];
  // Messages that tests send are no prose of ours; identifiers hold there, too.
  const isTest = /\/test\/|\.test\./u.test(file);
  return rules.flatMap(({ word, instead, pattern }) =>
    stored[word]?.test(file) || (isTest && word in prose)
      ? []
      : [...text.matchAll(pattern)].map(({ index }) => {
          const line = text.slice(0, index).split('\n').length;
          return `${file}:${line}: "${word}" is now: ${instead}`;
        }),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const files = execFileSync('git', ['ls-files', '-z', '*.ts', '*.tsx', '*.mjs', '*.cjs', '*.lua', '*.md', '*.yml', '*.sh'], {
    encoding: 'utf8',
  });
  const found = files
    .split('\0')
    .filter((file) => file !== '')
    .flatMap((file) => [...findOldWords(file, file), ...findOldWords(file, readFileSync(file, 'utf8'))]);
  for (const line of found) process.stdout.write(`${line}\n`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
