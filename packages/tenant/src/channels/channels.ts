import { stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  AppError,
  messagingChannels,
  toAppName,
  ChannelBinding,
  ChannelError,
  channelDefinitions,
  parseChannelSettings,
  type MessagingChannel,
  type ChannelSettings,
  type ChannelView,
} from '@concierge/contract';
import {
  assertNotLater,
  ignoreMissing,
  isSystemError,
  keepFolders,
  makeStoreFolder,
  RecordFolder,
  StatCache,
  unlessLater,
  type FolderSync,
  type Parsed,
  type RecordChanges,
} from '@concierge/files';
import { KeyedMutex, type Log } from '@concierge/runtime';
import { CredentialDropFiles } from './credential-drop-files.ts';
import { SendingStops, type StoppedBinding } from './sending-stops.ts';
import type { TenantSecrets } from '../tenant-secrets.ts';

const reconnect =
  'its credentials cannot be opened here: they were sealed for another tenant id or with another SECRETS_KEY; connect it again';

export interface ChannelsOptions {
  readonly tenantId: string;
  /** tenants/<id>/channels */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly secrets: TenantSecrets;
  /** Something can be sent by a channel again, or for the first time. */
  readonly onOpened?: () => Promise<void>;
  readonly changes: RecordChanges;
  readonly log: Log;
}

type Direction = 'inbound' | 'outbound';

/** What a binding's file came to. */
type Opened =
  | { readonly state: 'open'; readonly settings: ChannelSettings[MessagingChannel] }
  | { readonly state: 'disabled' }
  | { readonly state: 'broken'; readonly error: AppError };

/**
 * The channels a tenant is connected to, a file each. Credentials go in and are opened for the channel's adapter only;
 * no view has them. The time when messages last came and went is the time of an empty file beside the binding; the last
 * error is a separate file. Neither touches credentials.
 */
export class Channels {
  readonly #options: ChannelsOptions;
  readonly #bindings: RecordFolder<typeof ChannelBinding>;
  readonly #errors: RecordFolder<typeof ChannelError>;
  readonly #writers = new KeyedMutex();
  readonly #stops: SendingStops;
  readonly #plain: CredentialDropFiles;
  readonly #opened = new StatCache<Opened>(messagingChannels.length);

  constructor(options: ChannelsOptions) {
    const { folder, folders, tenantId, changes, log } = options;
    this.#options = options;
    const shared = { changes, revisionOf: ({ updatedAt }: ChannelBinding) => updatedAt };
    this.#bindings = new RecordFolder({ folder, folders, tenantId, log, schema: ChannelBinding, names: /^channel_[a-z]$/u, shared });
    this.#errors = new RecordFolder({ folder, folders, tenantId, log, schema: ChannelError, names: /^channel_[a-z]\.error$/u });
    this.#stops = new SendingStops({ folder, folders, tenantId, log });
    this.#plain = new CredentialDropFiles({
      folder,
      folders,
      tenantId,
      log,
      keep: async (channel, settings) => this.#keep(channel, settings),
    });
  }

  /** The connected channels, in the order of their names. */
  async list(): Promise<ChannelView[]> {
    const views = await Promise.all(messagingChannels.map(async (channel) => this.find(channel)));
    return views.filter((view) => view !== undefined);
  }

  /** undefined when it is not connected and no file has tried to connect it. */
  async find(channel: MessagingChannel): Promise<ChannelView | undefined> {
    await this.#plain.takeOver();
    const refused = this.#plain.findDropProblem(channel);
    const read = await this.#bindings.read(channel);
    if (read === undefined && refused === undefined) return undefined;
    const status = {
      lastInboundAt: await this.#lastAt(channel, 'inbound'),
      lastOutboundAt: await this.#lastAt(channel, 'outbound'),
      lastError: (await unlessLater(this.#errors.find(errorName(channel)))) ?? null,
    };
    const app = toAppName(channel);
    if (read?.status !== 'ok' || !isWhole(read.value, channel)) {
      const reason = refused ?? explainBroken(read);
      return { channel, app, state: 'broken', reason, identifiers: {}, secrets: {}, createdAt: null, updatedAt: null, ...status };
    }
    const { identifiers, createdAt, updatedAt, sealed } = read.value;
    const secrets = Object.fromEntries(Object.entries(sealed).map(([name, text]) => [name, this.#secretState(channel, name, text)]));
    const state = Object.values(secrets).includes('unreadable')
      ? ({ state: 'broken', reason: reconnect } as const)
      : await this.#readState(read.value);
    return {
      channel,
      app,
      ...state,
      ...(refused !== undefined && { reason: refused }),
      identifiers,
      secrets,
      createdAt,
      updatedAt,
      ...status,
    };
  }

  /** The state of a binding that can be opened. */
  async #readState({ channel, enabled, disabledReason, updatedAt }: ChannelBinding): Promise<Pick<ChannelView, 'state' | 'reason'>> {
    if (!enabled) return { state: 'disabled', reason: disabledReason };
    const stop = await this.#stops.find({ channel, updatedAt });
    return stop === undefined ? { state: 'enabled', reason: disabledReason } : { state: 'receive_only', reason: stop.reason };
  }

  /**
   * What the channel's adapter needs, secrets included. undefined when the channel is not connected, or disabled. The
   * file is opened once: as long as nothing changes, a call costs two system calls; a change by any process is in force
   * with the next call.
   * @throws AppError internal_error when it is connected and cannot be read
   */
  async open<Channel extends MessagingChannel>(channel: Channel): Promise<ChannelSettings[Channel] | undefined> {
    await this.#plain.takeOver();
    const look = async (): Promise<Opened> => this.#open(channel);
    const opened = this.#bindings.isOutdated(channel)
      ? await look()
      : await this.#opened.get(join(this.#options.folder, `${channel}.json`), look);
    if (opened?.state === 'broken') throw opened.error;
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- its path names the channel; TypeScript loses the pairing
    return opened?.state === 'open' ? (opened.settings as ChannelSettings[Channel]) : undefined;
  }

  /** As `open`, of a disabled one too: to ask the provider about it. */
  async credentials<Channel extends MessagingChannel>(channel: Channel): Promise<ChannelSettings[Channel] | undefined> {
    await this.#plain.takeOver();
    const read = await this.#readWhole(channel);
    return read === undefined ? undefined : this.#unseal(channel, read);
  }

  async #open(channel: MessagingChannel): Promise<Opened> {
    try {
      const read = await this.#readWhole(channel);
      return read?.enabled === true ? { state: 'open', settings: this.#unseal(channel, read) } : { state: 'disabled' };
    } catch (error) {
      if (error instanceof AppError) return { state: 'broken', error };
      throw error;
    }
  }

  async #readWhole(channel: MessagingChannel): Promise<ChannelBinding | undefined> {
    const read = await this.#bindings.read(channel);
    if (read === undefined) return undefined;
    assertNotLater(read, channel);
    if (read.status === 'broken' || !isWhole(read.value, channel))
      throw new AppError('internal_error', 'A stored channel binding cannot be read; connect it again.');
    return read.value;
  }

  #unseal<Channel extends MessagingChannel>(channel: Channel, { identifiers, sealed }: ChannelBinding): ChannelSettings[Channel] {
    const opened = Object.entries(sealed).map(([name, text]) => [name, this.#options.secrets.open(toSecretName(channel, name), text)]);
    return parseChannelSettings(channel, { ...identifiers, ...Object.fromEntries(opened) });
  }

  /**
   * Connects it, or connects it anew: every field is given each time. On disk when it returns.
   * @throws AppError invalid_request
   */
  async connect(channel: MessagingChannel, settings: unknown): Promise<ChannelView> {
    // What lies there already is older than these.
    await this.#plain.takeOver();
    await this.#keep(channel, settings);
    return this.#existing(channel);
  }

  async #keep(channel: MessagingChannel, settings: unknown): Promise<void> {
    const parsed: Readonly<Record<string, string | undefined>> = parseChannelSettings(channel, settings);
    const names: readonly string[] = channelDefinitions[channel].secrets;
    const entries = Object.entries(parsed).flatMap(([name, value]): (readonly [string, string])[] =>
      value === undefined ? [] : [[name, value]],
    );
    const sealed = entries
      .filter(([name]) => names.includes(name))
      .map(([name, text]) => [name, this.#options.secrets.seal(toSecretName(channel, name), text)]);
    const identifiers = Object.fromEntries(entries.filter(([name]) => !names.includes(name)));
    const at = new Date().toISOString();
    await this.#writers.run(channel, async () => {
      const before = await this.#bindings.find(channel);
      await this.#bindings.put(channel, {
        ...before,
        version: 1,
        channel,
        enabled: true,
        disabledReason: null,
        identifiers,
        sealed: Object.fromEntries(sealed),
        createdAt: before?.createdAt ?? at,
        updatedAt: at,
      });
      await this.#errors.remove(errorName(channel));
      await this.#stops.clear(channel);
    });
    await this.#options.onOpened?.();
  }

  /**
   * Stores what the provider reports of the account for the binding as it was seen: credentials that it was given since
   * belong to the same account. Whether it is enabled stays as it is.
   */
  async learn(
    { channel, updatedAt }: Pick<ChannelView, 'channel' | 'updatedAt'>,
    identifiers: Readonly<Record<string, string>>,
  ): Promise<void> {
    await this.#writers.run(channel, async () => {
      const before = await this.#bindings.find(channel);
      if (before === undefined || before.updatedAt !== updatedAt) return;
      const learned = { ...before.identifiers, ...identifiers };
      await this.#bindings.put(channel, { ...before, identifiers: learned, updatedAt: new Date().toISOString() });
    });
  }

  /** A reason disables it, null enables it again. @throws AppError not_found */
  async setDisabled(channel: MessagingChannel, reason: string | null): Promise<ChannelView> {
    await this.#writers.run(channel, async () => {
      const before = await this.#bindings.find(channel);
      if (before === undefined) throw notConnected();
      await this.#bindings.put(channel, {
        ...before,
        enabled: reason === null,
        disabledReason: reason,
        updatedAt: new Date().toISOString(),
      });
    });
    if (reason === null) await this.#options.onOpened?.();
    return this.#existing(channel);
  }

  /**
   * The provider refuses what is sent for the binding as it was seen: nothing is sent until a try goes through, or
   * until it is connected anew. What contacts write is still taken: a provider whose calls are refused for a while
   * removes its webhook.
   */
  async stopSending(seen: StoppedBinding, stop: { readonly reason: string; readonly nowMs: number }): Promise<void> {
    await this.#stops.stop(seen, stop);
  }

  /** The provider took a message. */
  async resumeSending(channel: MessagingChannel): Promise<void> {
    if (await this.#stops.clear(channel)) await this.#options.onOpened?.();
  }

  /** Credentials and status go, conversations stay. @throws AppError not_found */
  async disconnect(channel: MessagingChannel): Promise<void> {
    await this.#plain.takeOver();
    const hadPlain = await this.#plain.remove(channel);
    await this.#writers.run(channel, async () => {
      if (!(await this.#bindings.remove(channel)) && !hadPlain) throw notConnected();
      await this.#errors.remove(errorName(channel));
      await this.#stops.clear(channel);
      for (const direction of ['inbound', 'outbound'] as const) await ignoreMissing(unlink(this.#toActivityPath(channel, direction)));
    });
  }

  /** A message has come in, or gone out. */
  async note(channel: MessagingChannel, direction: Direction, at = new Date()): Promise<void> {
    const path = this.#toActivityPath(channel, direction);
    try {
      await utimes(path, at, at);
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
      const { folder, folders } = this.#options;
      await keepFolders(await makeStoreFolder(folder, { store: folder }), folders);
      await writeFile(path, '', { mode: 0o600 });
      await utimes(path, at, at);
    }
  }

  /** The last thing that went wrong, in words for the owner: no token and no text of a message. */
  async noteError(channel: MessagingChannel, error: Pick<ChannelError, 'code' | 'message'>): Promise<void> {
    await this.#errors.put(errorName(channel), { ...error, at: new Date().toISOString() });
  }

  async sweep(): Promise<void> {
    await this.#bindings.sweep();
  }

  async #existing(channel: MessagingChannel): Promise<ChannelView> {
    const view = await this.find(channel);
    if (view === undefined) throw notConnected();
    return view;
  }

  #secretState(channel: MessagingChannel, name: string, sealed: string): 'set' | 'unreadable' {
    try {
      this.#options.secrets.open(toSecretName(channel, name), sealed);
      return 'set';
    } catch {
      return 'unreadable';
    }
  }

  async #lastAt(channel: MessagingChannel, direction: Direction): Promise<string | null> {
    const facts = await stat(this.#toActivityPath(channel, direction)).catch(() => undefined);
    return facts === undefined ? null : facts.mtime.toISOString();
  }

  #toActivityPath(channel: MessagingChannel, direction: Direction): string {
    return join(this.#options.folder, `${channel}.${direction}`);
  }
}

function explainBroken(read: Parsed<ChannelBinding> | undefined): string {
  return read?.status === 'broken' && read.isLater === true ? read.reason : 'its file is damaged; connect it again';
}

/** Has the binding every field that this channel needs? One that was edited by hand may not. */
function isWhole(binding: ChannelBinding, channel: MessagingChannel): boolean {
  const present = { ...binding.identifiers, ...binding.sealed };
  const fields = Object.entries(channelDefinitions[channel].settings.shape).filter(([, schema]) => !schema.safeParse(undefined).success);
  return binding.channel === channel && fields.every(([name]) => Object.hasOwn(present, name));
}

function toSecretName(channel: MessagingChannel, name: string): string {
  return `channels/${channel}.${name}`;
}

function errorName(channel: MessagingChannel): string {
  return `${channel}.error`;
}

function notConnected(): AppError {
  return new AppError('not_found', 'The channel is not connected.');
}
