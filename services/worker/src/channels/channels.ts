import {
  keepTyping,
  type ProviderUrls,
  FileUnavailableError,
  type ChannelSender,
  type FetchedFile,
  type FileFailure,
} from '@concierge/channel';
import { answerDeadline, background, type Log, Slots } from '@concierge/runtime';
import { ChannelSenders, toDestination } from './channel-senders.ts';
import type { TurnRun } from '@concierge/turn';
import type { TurnsToAnswer } from '../turn/collected-turns.ts';
import type { MediaFile } from '@concierge/agent';
import { AppError, limits, type AcceptedTurn, type ChannelMedia, type UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { safeFileName, sniffType, storeUpload } from '@concierge/upload';

/** What a turn that came from a channel needs of it while it runs. */
export interface WorkerChannels {
  readonly fetchFiles: ChannelFiles['fetchFiles'];
  readonly showTyping: ChannelTyping['show'];
}

export function openChannels({ urls, log }: { readonly urls: ProviderUrls; readonly log: Log }): WorkerChannels {
  const senders = new ChannelSenders({ urls, log });
  const files = new ChannelFiles({ senders, log });
  const typing = new ChannelTyping({ senders, log });
  return {
    fetchFiles: async (run, turns) => files.fetchFiles(run, turns),
    showTyping: (run, turns) => typing.show(run, turns),
  };
}

interface ChannelTypingOptions {
  readonly senders: ChannelSenders;
  readonly log: Log;
}

/**
 * Shows the contact that an answer is being written. It runs beside the turn: it delays nothing, and no failure of it
 * reaches the turn.
 */
class ChannelTyping {
  readonly #options: ChannelTypingOptions;

  constructor(options: ChannelTypingOptions) {
    this.#options = options;
  }

  /** Shows typing until the result is disposed or the turn is stopped. */
  show(run: TurnRun, turns: TurnsToAnswer): Disposable {
    const stop = new AbortController();
    background(this.#keepTyping(run, turns, AbortSignal.any([run.signal, stop.signal])), this.#options.log);
    return {
      [Symbol.dispose]: () => {
        stop.abort();
      },
    };
  }

  /** A channel that shows typing as an answer to a message gets the newest message. */
  async #keepTyping({ scope, turn }: TurnRun, turns: TurnsToAnswer, signal: AbortSignal): Promise<void> {
    const channelMessage = turns.at(-1)?.channelMessage;
    // A staff member has the conversation: the service does not announce what they write.
    if (channelMessage === undefined || (await scope.handoffs.isPaused(turn.sessionId))) return;
    const sender = await this.#options.senders.findSender(scope, turn);
    if (sender !== undefined)
      await keepTyping(sender, { ...toDestination(channelMessage), inboundMessageId: channelMessage.messageRef }, signal);
  }
}

/** The time for all files of one prompt together: the contact waits. */
const FETCH_TIMEOUT_MS = 30_000;
/** Files of one prompt in memory at once. */
const FETCH_AT_ONCE = 3;
const MAX_MEGABYTES = limits.uploadMaxBytes / (1024 * 1024);

const tooLarge = `it is larger than ${String(MAX_MEGABYTES)} MiB, which is too large to be read here`;
const notHeard = 'it cannot be listened to here';
const notSeen = 'videos cannot be watched here';
const unreadable = 'its type cannot be read here; pictures (png, jpeg, gif, webp), PDF and plain text can';
const tooMany = `only the first ${String(limits.attachmentsMax)} files are looked at`;
const notConnected = 'it could not be fetched, because the channel is not connected any more';
const tooSlow = 'it could not be fetched in time';

const failures: Readonly<Record<FileFailure, string>> = {
  gone: 'the app does not have it any more',
  too_large: tooLarge,
  refused: 'the app did not hand it out',
  host_not_allowed: 'it is not on a host of the app, so it was not fetched',
  unreachable: 'it could not be fetched from the app',
};

const extensions: Readonly<Record<UploadRef['type'], string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'application/pdf': 'pdf',
  'text/plain': 'txt',
};

interface ChannelFilesOptions {
  readonly senders: ChannelSenders;
  readonly log: Log;
}

interface Fetching {
  readonly scope: TenantScope;
  readonly sender: ChannelSender;
  /** Ends with the turn, and when the time is over. */
  readonly signal: AbortSignal;
}

/**
 * Files that came with messages from a channel: fetched from it when a reply is about to be written, and kept as
 * uploads are.
 */
class ChannelFiles {
  readonly #options: ChannelFilesOptions;

  constructor(options: ChannelFilesOptions) {
    this.#options = options;
  }

  /**
   * What became of each file, by turn, in the order in which they were sent. A file that cannot be had is no failure:
   * the model reads why.
   * @throws the reason of the turn's signal; the disk's error when a file cannot be kept
   */
  async fetchFiles(run: TurnRun, turns: readonly AcceptedTurn[]): Promise<ReadonlyMap<string, readonly MediaFile[]>> {
    const wanted = turns.flatMap(({ turnId, channelMessage }) => (channelMessage?.media ?? []).map((media) => ({ turnId, media })));
    if (wanted.length === 0) return new Map();
    const sender = await this.#options.senders.findSender(run.scope, run.turn);
    const signal = AbortSignal.any([run.signal, answerDeadline(FETCH_TIMEOUT_MS)]);
    const slots = new Slots(FETCH_AT_ONCE);
    const files = await Promise.all(
      wanted.map(async ({ turnId, media }, index) => {
        const problem = index < limits.attachmentsMax ? findProblem(media) : tooMany;
        if (problem !== undefined) return { turnId, file: { problem } };
        if (sender === undefined) return { turnId, file: { problem: notConnected } };
        return { turnId, file: await slots.run(async () => this.#keep(media, { scope: run.scope, sender, signal })) };
      }),
    );
    run.signal.throwIfAborted();
    const byTurn = Map.groupBy(files, ({ turnId }) => turnId);
    return new Map(Array.from(byTurn, ([turnId, some]) => [turnId, some.map(({ file }) => file)]));
  }

  async #keep(media: ChannelMedia, fetching: Fetching): Promise<MediaFile> {
    const fetched = await this.#fetch(media, fetching);
    if ('problem' in fetched) return fetched;
    const bytes = Buffer.from(fetched.bytes.buffer, fetched.bytes.byteOffset, fetched.bytes.byteLength);
    try {
      const type = await sniffType(bytes, 'The file');
      const name = safeFileName(media.fileName ?? `${media.kind}.${extensions[type]}`);
      return { upload: await storeUpload(fetching.scope, { name, type, bytes }) };
    } catch (error) {
      if (error instanceof AppError && error.code === 'unsupported_media_type') return { problem: unreadable };
      if (error instanceof AppError && error.code === 'too_large') return { problem: 'it has more pixels than can be looked at here' };
      throw error;
    }
  }

  async #fetch(media: ChannelMedia, { scope, sender, signal }: Fetching): Promise<FetchedFile | { readonly problem: string }> {
    if (signal.aborted) return { problem: tooSlow };
    try {
      return await sender.fetchFile({ file: { id: media.id, url: media.url }, maxBytes: limits.uploadMaxBytes }, signal);
    } catch (error) {
      if (signal.aborted) return { problem: tooSlow };
      if (!(error instanceof FileUnavailableError)) throw error;
      this.#options.log.info({ tenantId: scope.tenantId, kind: media.kind, failure: error.failure }, 'a file of a message cannot be had');
      return { problem: failures[error.failure] };
    }
  }
}

/** Problems that are known without a request. */
function findProblem({ kind, mediaType, bytes }: ChannelMedia): string | undefined {
  const isFamily = (family: string): boolean => mediaType?.toLowerCase().startsWith(`${family}/`) === true;
  if (kind === 'voice' || kind === 'audio' || isFamily('audio')) return notHeard;
  if (kind === 'video' || isFamily('video')) return notSeen;
  return (bytes ?? 0) > limits.uploadMaxBytes ? tooLarge : undefined;
}
