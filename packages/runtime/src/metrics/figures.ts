import {
  channelNames,
  deliveryStates,
  EventType,
  finishReasons,
  messagingChannels,
  toolNames,
  UploadType,
  waitReasons,
} from '@concierge/contract';

/** The processes that serve figures. */
export type FigureService = 'gateway' | 'worker' | 'cron';

/**
 * A figure: what it is called, what it says, who has it, and every value that each of its labels may have. A label
 * never names a tenant, a session, a turn, or what a model or a client made up.
 */
export interface Figure {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly services: readonly FigureService[];
  readonly help: string;
  /**
   * Label → its values. `null`: as many as the operator's configuration has, or the routes of the API: such a figure
   * has no series before its first event, unless its service names the values (`openFigure`).
   */
  readonly labels?: Readonly<Record<string, readonly string[] | null>>;
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /** How the figures of several processes of one gateway are put together; they are added up otherwise. */
  readonly aggregator?: 'max';
}

const everywhere = ['gateway', 'worker', 'cron'] as const;
const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const;
const LONG = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900] as const;

/** Agents of a tenant's own are `other`: their names are as many as tenants like. */
const agentKinds = ['admin', 'cs', 'other'] as const;
/** What becomes of a turn: how the reply ended, or the code of its error. */
export const turnOutcomes = [
  ...finishReasons,
  'provider_error',
  'own_key_failed',
  'turn_timeout',
  'turn_crashed',
  'internal_error',
  'other',
] as const;
/** Tools of attached servers count as `attached`, names that a model made up as `unknown`. */
const toolLabels = [...toolNames, 'attached', 'unknown'] as const;
/** What a reconciler puts right. */
const repairKinds = ['wakeup', 'orphan', 'restore', 'delivery', 'event'] as const;
export type RepairKind = (typeof repairKinds)[number];

/** Every figure, by its name. docs/metrics.md is made from this; rules and boards may name nothing else. */
export const figures = {
  concierge_http_request_duration_seconds: {
    kind: 'histogram',
    services: ['gateway'],
    help: 'Time until the answer to a request begins',
    labels: { route: null, method: null, status: null },
    buckets: SHORT,
  },
  concierge_http_answers_total: {
    kind: 'counter',
    services: ['gateway'],
    help: 'Answers to requests, by the first digit of their status',
    labels: { class: ['1xx', '2xx', '3xx', '4xx', '5xx'] },
  },
  concierge_turn_accept_duration_seconds: {
    kind: 'histogram',
    services: ['gateway'],
    help: 'Time to accept a turn: on disk and in its lane',
    labels: { agent: agentKinds },
    buckets: SHORT,
  },
  concierge_webhook_acknowledge_duration_seconds: {
    kind: 'histogram',
    services: ['gateway'],
    help: 'Time to acknowledge a webhook: every message in it on disk',
    labels: { channel: messagingChannels },
    buckets: SHORT,
  },
  concierge_webhook_requests_total: {
    kind: 'counter',
    services: ['gateway'],
    help: 'Webhooks of channels: acknowledged, rejected (signature, unknown or disabled channel, malformed), failed (the provider sends it again)',
    labels: { channel: messagingChannels, outcome: ['acknowledged', 'rejected', 'failed'] },
  },
  concierge_webhook_messages_total: {
    kind: 'counter',
    services: ['gateway'],
    help: 'Messages in webhooks: accepted, duplicate (seen before), overflow (too many wait), busy (the tenant refuses while one runs), unreadable',
    labels: { channel: messagingChannels, outcome: ['accepted', 'duplicate', 'overflow', 'busy', 'unreadable'] },
  },
  concierge_inbound_items_total: {
    kind: 'counter',
    services: ['gateway'],
    help: 'Items of webhooks by what they were and what became of them',
    labels: { channel: messagingChannels, kind: null, reason: null },
  },
  concierge_event_streams_open: { kind: 'gauge', services: ['gateway'], help: 'Event streams being served' },
  concierge_event_streams_total: { kind: 'counter', services: ['gateway'], help: 'Event streams begun' },
  concierge_event_stream_clients_dropped_total: {
    kind: 'counter',
    services: ['gateway'],
    help: 'Clients dropped because they did not read',
  },
  concierge_gateway_processes: { kind: 'gauge', services: ['gateway'], help: 'Processes of the gateway that serve' },
  concierge_uploads_total: {
    kind: 'counter',
    services: ['gateway'],
    help: 'Files stored, by their media type',
    labels: { type: UploadType.options },
  },

  concierge_turns_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Ended turns, by how their reply ended or the code of their error',
    labels: { agent: agentKinds, channel: channelNames, outcome: turnOutcomes },
  },
  concierge_turns_running: { kind: 'gauge', services: ['worker'], help: 'Turns this worker runs now' },
  concierge_turn_slots: { kind: 'gauge', services: ['worker'], help: 'Turns this worker runs at once, at each depth of sub-agents' },
  concierge_turn_seconds: { kind: 'histogram', services: ['worker'], help: 'From acceptance to the end', buckets: LONG },
  concierge_turn_first_text_seconds: {
    kind: 'histogram',
    services: ['worker'],
    help: 'From acceptance to the first text',
    buckets: LONG,
  },
  concierge_turn_wait_seconds: {
    kind: 'histogram',
    services: ['worker'],
    help: 'From acceptance to the first start: the time in the lane and the time in the queue together',
    buckets: LONG,
  },
  concierge_turn_lane_seconds: {
    kind: 'histogram',
    services: ['worker'],
    help: 'From acceptance until the turn may run: behind turns of its session, for more messages, for the share of its tenant',
    buckets: LONG,
  },
  concierge_turn_queue_seconds: {
    kind: 'histogram',
    services: ['worker'],
    help: 'From when a turn may run to its first start: for a free slot of a worker',
    buckets: LONG,
  },
  concierge_turn_restarts_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Starts of turns beyond their first: a worker died or was stopped, or an attempt failed',
  },
  concierge_fenced_writes_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Attempts that were ended because another worker has the turn: what they would have written was refused',
  },
  concierge_model_calls_total: { kind: 'counter', services: ['worker'], help: 'Answered model calls', labels: { model: null } },
  concierge_model_tokens_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Tokens of ended turns; cached: the part of the input that the provider had',
    labels: { model: null, kind: ['input', 'output', 'cached'] },
  },
  concierge_model_cost_usd_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Cost of ended turns in US dollars, by the prices of providers.json',
    labels: { model: null },
  },
  concierge_model_failures_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Failed attempts at a model call',
    labels: { model: null, kind: ['context_overflow', 'rate_limited', 'unavailable', 'rejected', 'timeout'] },
  },
  concierge_model_requests_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Requests to model providers by what came of them: the first digit of the status, none when there was no answer',
    labels: { provider: null, status: ['2xx', '3xx', '4xx', '429', '5xx', 'none'] },
  },
  concierge_model_retries_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Failed model calls that were made again with the same model',
  },
  concierge_model_fallbacks_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Models that were given up for a call: the next of the fallbacks is asked, or the call fails',
  },
  concierge_tool_calls_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Tool calls of ended turns',
    labels: { tool: toolLabels, outcome: ['ok', 'error'] },
  },
  concierge_tool_seconds: {
    kind: 'histogram',
    services: ['worker'],
    help: 'Duration of tool calls',
    labels: { tool: toolLabels },
    buckets: [0.01, 0.1, 1, 5, 30, 120],
  },
  concierge_compactions_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Sessions made smaller: tool results left out (prune), or a summary written (summarise)',
    labels: { kind: ['prune', 'summarise'] },
  },
  concierge_sandbox_starts_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Sandboxes that turns opened for their first command, or failed to open',
    labels: { outcome: ['started', 'failed'] },
  },
  concierge_deliveries_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Messages to channels by outcome',
    labels: { channel: messagingChannels, state: deliveryStates },
  },
  concierge_channel_failures_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Attempts to send that a channel refused, by class; binding_failed: nothing is sent until the credentials are fixed',
    labels: {
      channel: messagingChannels,
      class: [
        'retry',
        'resend_plain',
        'resend_without_reply',
        'resend_to',
        'window_closed',
        'refused',
        'recipient_failed',
        'binding_failed',
        'unknown',
      ],
    },
  },
  concierge_events_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'Tries at sending an event: sent, failed (to be tried again), dead (given up)',
    labels: { type: EventType.options, outcome: ['sent', 'failed', 'dead'] },
  },
  concierge_dead_letters_total: {
    kind: 'counter',
    services: ['worker'],
    help: 'What was given up and waits for a redrive: messages to channels that failed, expired or may not have arrived; webhook events',
    labels: { kind: ['delivery', 'event'] },
  },

  concierge_waiting_turns: {
    kind: 'gauge',
    services: ['cron'],
    help: 'Turns that wait now, by reason, in the whole system; staff: conversations that wait for a staff member',
    labels: { reason: waitReasons },
  },
  concierge_oldest_waiting_turn_age_seconds: {
    kind: 'gauge',
    services: ['cron'],
    help: 'Age of the oldest turn that waits, by reason; 0 when none does',
    labels: { reason: waitReasons },
  },
  concierge_waiting_look_age_seconds: {
    kind: 'gauge',
    services: ['cron'],
    help: 'Time since waiting turns were last counted: the figures of waiting turns are that old',
  },
  concierge_workers: {
    kind: 'gauge',
    services: ['cron'],
    help: 'Workers by state; running: takes turns, stalled: its event loop stands still',
    labels: { state: ['running', 'draining', 'stalled'] },
  },
  concierge_redis_memory_bytes: {
    kind: 'gauge',
    services: ['cron'],
    help: 'Memory that Redis uses, and may use at most; 0: no limit is set',
    labels: { kind: ['used', 'max'] },
  },
  concierge_schedule_runs_total: {
    kind: 'counter',
    services: ['cron'],
    help: 'Runs by what became of them: missed, skipped, or how their turn ended',
    labels: { outcome: ['missed', 'skipped', 'done', 'failed', 'cancelled', 'lost'] },
  },
  concierge_schedule_failing_total: {
    kind: 'counter',
    services: ['cron'],
    help: 'Runs that failed when those before them had, too: schedules that keep failing',
  },
  concierge_schedule_lag_seconds: {
    kind: 'histogram',
    services: ['cron'],
    help: 'From the time of a schedule to the start of its run',
    buckets: LONG,
  },
  concierge_reconciler_repairs_total: {
    kind: 'counter',
    services: ['worker', 'cron'],
    help: 'What reconcilers put right: wakeup (a lane was woken again), orphan (a turn had no lane), restore (Redis came back empty or started again), delivery, event (was not planned)',
    labels: { kind: repairKinds },
  },

  concierge_redis_errors_total: {
    kind: 'counter',
    services: everywhere,
    help: 'Failures of Redis: of a connection, or of a command for the state of Redis or of the connection',
    labels: { kind: ['connection', 'command'] },
  },
  concierge_index_errors_total: {
    kind: 'counter',
    services: everywhere,
    help: 'Uses of the index that failed for the state of its database or its disk',
  },
  concierge_event_loop_stall_seconds: {
    kind: 'gauge',
    services: everywhere,
    help: 'Longest time that the event loop stood still in the last ten seconds',
    aggregator: 'max',
  },
  concierge_disk_free_bytes: {
    kind: 'gauge',
    services: everywhere,
    help: 'Space left for the data directory, for users that are not root',
    aggregator: 'max',
  },
  concierge_disk_size_bytes: {
    kind: 'gauge',
    services: everywhere,
    help: 'Size of the file system of the data directory',
    aggregator: 'max',
  },
} as const satisfies Readonly<Record<string, Figure>>;

export type FigureName = keyof typeof figures;
