import { SendingStop, type MessagingChannel } from '@concierge/contract';
import { KeyedMutex } from '@concierge/runtime';
import { RecordFolder, type RecordFolderOptions } from '@concierge/files';

/** For people who read the file: about when it is tried again. Who tries it counts in service time. */
const TRY_EVERY_MS = 15 * 60_000;

/** A channel that the provider refuses to send for, as its binding was when that happened. */
export interface StoppedBinding {
  readonly channel: MessagingChannel;
  readonly updatedAt: string | null;
}

/**
 * channels/<channel>.sending.json: the provider refuses what is sent with these credentials. Messages still come in.
 * States of a binding: sending → stopped → sending again, when one of the tries that are made now and then goes
 * through, or when it is connected anew: a stop belongs to one version of the binding.
 */
export class SendingStops {
  readonly #records: RecordFolder<typeof SendingStop>;
  readonly #writers = new KeyedMutex();

  constructor(place: Omit<RecordFolderOptions<typeof SendingStop>, 'schema' | 'names'>) {
    this.#records = new RecordFolder({ ...place, schema: SendingStop, names: /^channel_[a-z]\.sending$/u });
  }

  async find({ channel, updatedAt }: StoppedBinding): Promise<SendingStop | undefined> {
    const name = toStopName(channel);
    const stop = (await this.#records.has(name)) ? await this.#records.find(name) : undefined;
    return stop?.bindingUpdatedAt === updatedAt ? stop : undefined;
  }

  async stop(
    { channel, updatedAt }: StoppedBinding,
    { reason, nowMs }: { readonly reason: string; readonly nowMs: number },
  ): Promise<void> {
    if (updatedAt === null) return;
    await this.#writers.run(channel, async () => {
      const before = await this.find({ channel, updatedAt });
      const since = before?.since ?? new Date(nowMs).toISOString();
      const tryAgainAt = new Date(nowMs + TRY_EVERY_MS).toISOString();
      await this.#records.put(toStopName(channel), { version: 1, since, reason, bindingUpdatedAt: updatedAt, tryAgainAt });
    });
  }

  /** False when it was not stopped. */
  async clear(channel: MessagingChannel): Promise<boolean> {
    return this.#writers.run(channel, async () => this.#records.remove(toStopName(channel)));
  }
}

function toStopName(channel: MessagingChannel): string {
  return `${channel}.sending`;
}
