export interface Proof {
  /** Path from the root of the repository. */
  readonly file: string;
  /** The title of a test in it, or the description of a chaos test. */
  readonly name: string;
}

const chaos = (file: string, name: string): Proof => ({ file: `packages/acceptance/chaos/${file}`, name });

const owner = (name: string): Proof => ({ file: 'services/gateway/test/owner.int.test.ts', name });

const sessionEdits = (name: string): Proof => ({ file: 'services/gateway/test/session-edits.int.test.ts', name });

const contacts = (name: string): Proof => ({ file: 'services/gateway/test/contacts.int.test.ts', name });

const staffNotes = (name: string): Proof => ({ file: 'services/gateway/test/staff-notes.int.test.ts', name });

const upkeep = (name: string): Proof => ({ file: 'services/gateway/test/upkeep.int.test.ts', name });

const operatorFeed = (name: string): Proof => ({ file: 'services/gateway/test/feed.int.test.ts', name });

/**
 * Promises that are proven outside of this folder, mostly by breaking things. Each names the tests, or the chaos
 * scenarios, that hold it.
 */
export const heldElsewhere: Readonly<Record<string, readonly Proof[]>> = {
  'C/4/40': [
    owner('shows who wrote, under which name, the last words and who has the conversation'),
    owner('shows a conversation whose last turn failed as such'),
    owner('are filtered by agent, channel, origin and error, and begin with what was asked'),
  ],
  'C/4/41': [owner('has whole turns with their records, the last ones first')],
  'C/4/42': [owner('that failed are accepted once more, once')],
  'C/4/43': [
    owner('names the tenant, its key, plan and limits, and whether the demo model answers'),
    owner('is downloaded as it was, as an attachment of its own type'),
    owner('names its next five runs in its own zone'),
    owner('names its webhook, fields and a token, before and after it is connected'),
    owner('answers with everything of the tenant, to an admin alone, and puts it on record'),
  ],
  'C/4/44': [owner('answers allowed, or refused by which rule')],
  'C/4/45': [
    { file: 'services/gateway/test/retention.int.test.ts', name: 'says what the rule of the settings would remove, or another one' },
    { file: 'packages/turn/test/retention.int.test.ts', name: 'keeps what waits for an answer and what staff has, however old' },
    { file: 'packages/turn/test/retention.int.test.ts', name: 'is that of each tenant: the cron service removes by it' },
  ],
  'C/4/46': [
    { file: 'services/worker/test/operators.int.test.ts', name: 'ends what it runs, takes nothing new, and takes turns again' },
    { file: 'services/worker/test/operators.int.test.ts', name: 'shows over time what ended and failed, what providers did' },
  ],
  'C/4/47': [
    sessionEdits('begins another conversation with the messages up to a turn, and leaves the first as it is'),
    sessionEdits('counts what its first turns used once'),
    sessionEdits('are shown in lists, in the conversation and by a search, also while a turn runs, and go with the conversation'),
    { file: 'services/worker/src/turn/turn-runner.test.ts', name: 'keeps the message when it is cancelled before it began, and says so' },
    { file: 'packages/acceptance/e2e/chat-messages.test.ts', name: 'that wait are taken back at once' },
  ],
  'C/4/48': [
    contacts('are listed, the last one first, each once, and found by name, id and further ids'),
    contacts('have their ids, conversations with the reply window, and notes'),
    contacts('without an id are found by their conversation, and the owner is none'),
  ],
  'C/4/49': [
    staffNotes('are kept with the conversation, for staff alone'),
    staffNotes('and the assignee go with the conversation, and are not those of a later one of the same contact'),
    staffNotes('is set, shown in the list, filtered by, and taken away'),
    staffNotes('are the files in answers/, by name; what is too long for a message is none'),
    { file: 'packages/acceptance/e2e/inbox-page.test.ts', name: 'shows who a conversation is with, what staff noted, and who has it' },
  ],
  'C/4/50': [
    { file: 'services/gateway/test/docs.int.test.ts', name: 'begins with a first call, streaming and errors' },
    { file: 'services/gateway/test/docs.int.test.ts', name: 'says what every property and parameter means' },
    { file: 'services/gateway/test/docs.int.test.ts', name: 'has an example for %s that can be sent as it is' },
    { file: 'services/gateway/test/docs.int.test.ts', name: 'comes compressed to a client that takes %s, and a small one as it is' },
    { file: 'services/gateway/test/docs.int.test.ts', name: 'that is a stream never is' },
  ],
  'C/4/51': [
    { file: 'services/gateway/test/prompt.int.test.ts', name: 'names each part with its tokens, as the next turn has it' },
    { file: 'services/gateway/test/prompt.int.test.ts', name: 'names what has changed since the last turn of a conversation' },
    {
      file: 'services/gateway/test/prompt.int.test.ts',
      name: 'names the kept version of each file that the last turn had, so that what changed can be shown',
    },
    {
      file: 'services/gateway/test/prompt.int.test.ts',
      name: 'shows nothing of the owner’s notes in the prompt of an agent for strangers',
    },
  ],
  'C/4/52': [
    { file: 'services/gateway/test/simulate.int.test.ts', name: 'comes in on %s by the path of its webhooks, and its turn is marked' },
    { file: 'packages/channel/src/simulated.test.ts', name: 'is signed and read as the provider’s own' },
    { file: 'packages/channel/src/simulated.test.ts', name: 'is answered without a request to the provider' },
    {
      file: 'packages/acceptance/e2e/data-pages.test.ts',
      name: 'is a message on a channel that no provider brought, and the answer that no provider gets',
    },
  ],
  'C/4/53': [
    {
      file: 'services/gateway/test/widget-files.int.test.ts',
      name: 'goes with a message, and its name is shown again: nothing else of it',
    },
    { file: 'services/gateway/test/widget-files.int.test.ts', name: 'is one of so many in an hour' },
    { file: 'services/gateway/test/widget-files.int.test.ts', name: 'is so many bytes of those that a visitor may send in a day' },
    { file: 'services/gateway/test/widget-files.int.test.ts', name: 'is so many bytes of those that all visitors of a tenant may send' },
    { file: 'services/gateway/test/widget-files.int.test.ts', name: 'to those with a token, however many visitors one browser' },
    { file: 'services/gateway/test/widget-files.int.test.ts', name: 'is refused where the owner allows none' },
  ],
  'C/4/54': [
    {
      file: 'services/gateway/test/widget.int.test.ts',
      name: 'have office hours, which reach a page as moments, and nothing else of them does',
    },
    { file: 'packages/acceptance/e2e/widget.test.ts', name: 'says when staff answers again, outside of the office hours' },
    {
      file: 'services/cron/test/unanswered-handoffs.int.test.ts',
      name: 'is reported to the owner once, by an e-mail and an event, after the minutes that they set',
    },
    {
      file: 'services/cron/test/unanswered-handoffs.int.test.ts',
      name: 'is tried less and less often while the server takes nothing, whichever process looks',
    },
    owner('says whether owners get e-mails, as cron announces it'),
    { file: 'services/cron/test/unanswered-handoffs.int.test.ts', name: 'waits for the office hours, whose first minutes count' },
  ],
  'C/4/55': [
    operatorFeed('tells whose turns, handoffs and schedules change, and by the clock that figures do'),
    operatorFeed('says that everything is to be read again when Redis was away, or when it does not understand what has changed'),
    operatorFeed('is refused to the key of a tenant where there is a token, and beyond its limit'),
    { file: 'packages/acceptance/e2e/operate-page.test.ts', name: 'move by the feed of all tenants, and ask for nothing by the clock' },
  ],
  'C/4/56': [
    { file: 'services/gateway/test/file-history.int.test.ts', name: 'names who changed it and when, and has each text' },
    { file: 'services/gateway/test/file-history.int.test.ts', name: 'gives a version back, also of a deleted file' },
    { file: 'services/gateway/test/file-history.int.test.ts', name: 'keeps the last versions, and nothing of notes' },
    { file: 'services/gateway/test/file-history.int.test.ts', name: 'is reached by no path of the tenant’s files' },
    { file: 'services/gateway/test/file-history.int.test.ts', name: 'ends with the days of the retention rule' },
    { file: 'packages/turn/test/erasure.int.test.ts', name: 'removes earlier versions of files that name the contact, and no others' },
  ],
  'C/4/57': [
    {
      file: 'services/gateway/test/owner.int.test.ts',
      name: 'shows its next runs before it is made, or the words in which it would be refused',
    },
  ],
  'C/4/58': [
    upkeep('is compared with the files, and changed only when that is asked for'),
    upkeep('is found among those of all tenants, each once, from call to call'),
    upkeep('is not for who has no operators’ token, nor of a tenant that is none'),
  ],
  'C/4/59': [
    upkeep('are counted and cancelled with a reason, their streams end, and no other tenant’s turn is touched'),
    upkeep('are on record with the reason before the first is cancelled, for a gateway that is killed in between'),
    upkeep('are not cancelled by who has no operators’ token, nor of a tenant that is none'),
    { file: 'packages/cli/test/turns.int.test.ts', name: 'cancels all turns of a tenant after a count, with a reason that goes on record' },
  ],
  'C/4/60': [
    contacts('are found by their names without a look into their files'),
    upkeep('is compared with the files, and changed only when that is asked for'),
    { file: 'packages/turn/test/erasure.int.test.ts', name: 'leaves no word of it anywhere' },
  ],
  'C/4/61': [
    {
      file: 'services/gateway/test/honest-answers.int.test.ts',
      name: 'says what would be wrong with it in the words of writing it, and stores nothing',
    },
  ],
  'C/7/1': [
    chaos('chaos.test.ts', 'loses, doubles and reorders nothing through 20 kills'),
    chaos('webhooks/webhook-kills.test.ts', 'webhooks that are brought again and again to gateways that die'),
    {
      file: 'services/worker/test/deliveries.int.test.ts',
      name: 'is begun again when the worker that claimed it died before its request left',
    },
    { file: 'services/worker/test/deliveries.int.test.ts', name: 'is not begun again when its request may have left' },
  ],
  'C/7/2': [
    chaos('webhooks/answer-order.test.ts', 'messages of one contact through two gateways'),
    chaos('neighbours/neighbours.test.ts', 'ten quiet tenants beside a flood'),
    {
      file: 'packages/turn/test/order-of-acceptance.int.test.ts',
      name: 'when Redis was frozen, and carries out what had timed out when it goes on',
    },
  ],
  'C/7/3': [
    chaos('chaos.test.ts', 'goes on after a kill or a freeze at every fail point'),
    chaos('audit/auditor.test.ts', 'finds a side effect that happened twice, and one that is recorded and did not happen'),
  ],
  'C/7/4': [
    chaos('chaos.test.ts', 'goes on after a kill or a freeze at every fail point'),
    chaos('audit/auditor.test.ts', 'finds revisions that are torn, missing or ahead of the view'),
  ],
  'C/7/5': [{ file: 'packages/index/test/index-rebuild.int.test.ts', name: 'answers the same after it was deleted and rebuilt' }],
  'C/7/6': [
    { file: 'packages/tenant/test/path-race.int.test.ts', name: 'never lead to the content behind the links' },
    { file: 'packages/sandbox/test/conformance/isolation.ts', name: 'refuses everything that leads out' },
    { file: 'packages/cli/test/archives.int.test.ts', name: 'leads nowhere that a command of the tenant puts links to meanwhile' },
    {
      file: 'packages/tenant/test/tenant-removal.int.test.ts',
      name: 'removes nothing behind the links that its own commands put in place',
    },
  ],
  'C/7/7': [{ file: 'packages/agent/src/dispatcher/dispatcher.test.ts', name: 'gives cs no tool that is the admin’s' }],
  'C/7/8': [chaos('cron/cron-kills.test.ts', 'three replicas of cron that are killed again and again')],
  'C/7/9': [
    {
      file: 'services/gateway/test/operations.int.test.ts',
      name: 'fails readiness first, and serves what still comes until the balancer has had time to notice',
    },
    { file: 'services/gateway/test/operations.int.test.ts', name: 'ends streams that outlast the grace in good order' },
    { file: 'services/worker/test/drain.int.test.ts', name: 'hands it on between two of them' },
    chaos('chaos.test.ts', 'loses nothing and fails no turn in a rolling restart, and every process exits with 0'),
  ],
  'C/7/10': [
    chaos('redis/redis.test.ts', 'a Redis that loses what readers wait for'),
    { file: 'packages/turn/test/lost-streams.int.test.ts', name: 'is replayed from its session file, to early and late readers' },
  ],
  'C/7/11': [
    { file: 'packages/acceptance/e2e/channels/channels.test.ts', name: 'is taken while its app lets nothing be sent' },
    {
      file: 'services/worker/test/deliveries.int.test.ts',
      name: 'that nothing may be sent, for a day, is told to the owner instead of sending late',
    },
    { file: 'services/worker/test/deliveries.int.test.ts', name: 'that this person has blocked the bot ends this message and no other' },
  ],
  'C/7/12': [
    chaos('clocks/clocks.test.ts', 'clocks that disagree'),
    { file: 'packages/turn/test/clocks.int.test.ts', name: 'a dead worker’s turn is taken over when its lease has passed all the same' },
  ],
  'C/7/13': [
    { file: 'services/worker/src/turn/prompt-context.test.ts', name: 'MB leaves a turn that is answered, in a prompt of bounded size' },
    { file: 'services/worker/src/turn/prompt-context.test.ts', name: 'together take at most a quarter of a small window' },
  ],
};

const leadIn = 'introduces the lines after it';
const left = 'leaves the point open; docs/spec/contract.md decides it';

/**
 * Lines that state nothing of their own, and why. A line is here or has a case; a new one fails the run until it has
 * either.
 */
export const withoutPromise: Readonly<Record<string, string>> = {
  'SI/multi-tenant-agent-chat-service-interface/1': leadIn,
  'SI/what-the-service-does/1': leadIn,
  'SI/what-the-service-does/4': leadIn,
  'SI/session/6': left,
  'SI/session/7': left,
  'SI/message-input/6': left,
  'SI/states-and-transitions/1': left,
  'SI/post-api-admin/2': leadIn,
  'SI/post-api-admin/6': leadIn,
  'SI/post-api-cs/2': leadIn,
  'SI/get-api-sessions/2': leadIn,
  'SI/events/9': leadIn,
  'SI/events/12': left,
  'SI/events/13': left,
  'SI/events/14': left,
  'SI/errors/3': left,
  'SI/limits/6': left,
  'SI/limits/7': left,
  'SI/limits/8': left,
  'SI/limits/9': left,
  'SI/authentication/3': leadIn,
  'SI/authentication/7': left,
  'SI/authentication/8': left,
  'SI/versioning/4': left,
};
