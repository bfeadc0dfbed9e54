import { isDeepStrictEqual } from 'node:util';
import { providerUrls } from '@concierge/channel';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { limits, type AcceptedTurn, type ChannelMedia, type ChannelMessage } from '@concierge/contract';
import {
  eventually,
  FakeMeta,
  FakeTelegram,
  gate,
  onePixelPng,
  serveRequests,
  nestedFlatePdf,
  silentLog as log,
  smallPdf,
} from '@concierge/testing';
import { TurnCancelled } from '@concierge/turn';
import { openChannels } from '../src/channels/channels.ts';
import { turnRun } from '../src/fixtures/scripted-run.ts';
import { TestRunner, type PlayedTurn } from './test-runner.ts';

const png = Buffer.from(onePixelPng);
const meta = { accessToken: 'meta-token', appSecret: 'app-secret', phoneNumberId: '1065', pageId: '4042' };

let fixture: TestRunner;
let fakeMeta: FakeMeta;
let fakeTelegram: FakeTelegram;
/** What has to happen before the model is asked. */
let beforeAsking: () => Promise<void>;

setUpEach(async (stack) => {
  fakeMeta = stack.use(await new FakeMeta({ ...meta, now: () => 0 }).start());
  fakeTelegram = stack.use(await new FakeTelegram({ botToken: '7000:token' }).start());
  beforeAsking = async () => Promise.resolve();
  const urls = { ...providerUrls, metaGraph: fakeMeta.url, telegram: fakeTelegram.url, slack: fakeMeta.url };
  const listTools = async (): Promise<[]> => {
    await beforeAsking();
    return [];
  };
  fixture = stack.use(await TestRunner.start({ channels: openChannels({ urls, log }), tools: { attached: { listTools } } }));
  const { accessToken, appSecret } = meta;
  await fixture.scope.channels.connect('channel_a', { phoneNumberId: meta.phoneNumberId, accessToken, appSecret, verifyToken: 'v' });
  await fixture.scope.channels.connect('channel_b', { pageId: meta.pageId, accessToken, appSecret, verifyToken: 'v' });
  await fixture.scope.channels.connect('channel_c', { botToken: '7000:token', secretToken: 's' });
});

function file(parts: Partial<ChannelMedia>): ChannelMedia {
  return { kind: 'image', id: null, url: null, mediaType: null, fileName: null, bytes: null, sha256: null, ...parts };
}

/** A message from a channel. */
function message(
  media: readonly ChannelMedia[],
  parts: Omit<Partial<AcceptedTurn>, 'channelMessage'> & { channelMessage?: Partial<ChannelMessage> } = {},
): Partial<AcceptedTurn> {
  const { channelMessage, ...turn } = parts;
  const whole = {
    address: { to: '491', thread: null },
    isGroup: false,
    messageRef: '12',
    media: [...media],
    replyTo: null,
    ...channelMessage,
  };
  return { origin: 'webhook', agent: 'cs', authority: 'cs', channel: 'channel_c', sender: '491', text: '', ...turn, channelMessage: whole };
}

/** The last user message as the provider was sent it. */
function readSent({ requests }: PlayedTurn): string {
  return JSON.stringify(requests[0]?.body.messages.at(-1));
}

describe('a picture that a contact sent', () => {
  it('reaches the model as a picture, and stays with the conversation', async () => {
    fakeTelegram.addFile('f1', png);
    const played = await fixture.play([], message([file({ id: 'f1' })], { text: 'what is this?' }));
    expect(readSent(played)).toContain(`data:image/png;base64,${png.toString('base64')}`);
    const [user] = played.session.messages;
    expect(user).toMatchObject({
      role: 'user',
      text: 'what is this?',
      attachments: [{ name: 'image.png', type: 'image/png', size: png.length }],
    });
    const id = user?.role === 'user' ? (user.attachments?.[0]?.id ?? '') : '';
    expect(await fixture.scope.uploads.bytes(id)).toEqual(png);
  });

  it('is a message by itself', async () => {
    fakeMeta.addMedia('m1', { bytes: png, contentType: 'image/png' });
    const played = await fixture.play([], message([file({ id: 'm1' })], { channel: 'channel_a' }));
    expect(readSent(played)).toContain('data:image/png;base64');
    expect(played.session.messages[0]).toMatchObject({ text: '' });
  });

  it('is what its bytes are, whatever it is called', async () => {
    fakeTelegram.addFile('f1', Buffer.from('Open from 9 to 18.'));
    fakeTelegram.addFile('f2', Buffer.from('7f454c460201010000000000', 'hex'));
    const media = [
      file({ kind: 'document', id: 'f1', fileName: '../../photo.png' }),
      file({ kind: 'document', id: 'f2', fileName: 'menu.pdf' }),
    ];
    const sent = readSent(await fixture.play([], message(media)));
    expect(sent).toContain(String.raw`name=\"photo.png\" type=\"text/plain\">\nOpen from 9 to 18.`);
    expect(sent).toContain(String.raw`[Document \"menu.pdf\": its type cannot be read here`);
  });
});

describe('a PDF that a contact sent', () => {
  it('reaches the model as its text', async () => {
    fakeTelegram.addFile('f1', smallPdf('Two rooms from Friday'));
    const played = await fixture.play([], message([file({ kind: 'document', id: 'f1', fileName: 'booking.pdf' })]));
    expect(readSent(played)).toContain('Two rooms from Friday');
    expect(played.session.messages[0]).toMatchObject({ attachments: [{ name: 'booking.pdf', type: 'application/pdf' }] });
  });
});

describe('a PDF of one kilobyte that decodes to gigabytes', () => {
  it('costs the worker no memory, and the turn its text', async () => {
    fakeTelegram.addFile('f1', nestedFlatePdf());
    const before = process.memoryUsage.rss();
    let most = 0;
    const gauge = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 10);
    const played = await fixture.play([], message([file({ kind: 'document', id: 'f1', fileName: 'menu.pdf' })]));
    clearInterval(gauge);
    expect(readSent(played)).toContain('No text could be read from this PDF');
    expect(most - before).toBeLessThan(128 * 1024 * 1024);
  });
});

describe('a turn that is stopped while its files are fetched', () => {
  it('does not wait for them', async () => {
    const asked = gate();
    const open = gate();
    await using telegram = await serveRequests(async () => {
      asked.open();
      await open.opened;
      return new Response('{}');
    });
    const stop = new AbortController();
    const urls = { ...providerUrls, metaGraph: fakeMeta.url, telegram: telegram.url, slack: fakeMeta.url };
    const run = turnRun(fixture.scope, { signal: stop.signal }, message([file({ id: 'f1' })]));
    const fetching = openChannels({ urls, log }).fetchFiles(run, [run.turn]);
    await asked.opened;
    stop.abort(new TurnCancelled('cancelled'));
    await expect(fetching).rejects.toBe(stop.signal.reason);
    open.open();
  });
});

describe('what cannot be used', () => {
  it('is reported to the model: a voice message, a video', async () => {
    const media = [
      file({ kind: 'voice', id: 'f1' }),
      file({ kind: 'video', id: 'f2' }),
      file({ kind: 'document', id: 'f3', mediaType: 'audio/mpeg' }),
    ];
    const sent = readSent(await fixture.play([], message(media)));
    expect(sent).toContain('[Voice message: it cannot be listened to here.]');
    expect(sent).toContain('[Video: videos cannot be watched here.]');
    expect(sent).toContain('[Document: it cannot be listened to here.]');
    expect(fakeTelegram.callsTo('/getFile')).toEqual([]);
  });

  it('is reported: a file that is too large, and one that declares it before it is asked for', async () => {
    fakeTelegram.addFile('f1', Buffer.alloc(limits.uploadMaxBytes + 1));
    const media = [file({ kind: 'document', id: 'f1' }), file({ kind: 'document', id: 'f2', bytes: limits.uploadMaxBytes + 1 })];
    const sent = readSent(await fixture.play([], message(media, { text: 'read these' })));
    expect(sent.match(/\[Document: it is larger than 10 MiB/gu)).toHaveLength(2);
    expect(fakeTelegram.callsTo('/getFile').map(({ body }) => body['file_id'])).toEqual(['f1']);
  });

  it('is reported: a file that is gone, and one on a host that is not the channel’s, which is never asked', async () => {
    const asked: string[] = [];
    await using stranger = await serveRequests(({ url }) => {
      asked.push(url);
      return new Response('hello');
    });
    const gone = await fixture.play([], message([file({ id: 'nothing' })]));
    expect(readSent(gone)).toContain('[Picture: the app does not have it any more.]');
    const foreign = await fixture.play([], message([file({ url: `${stranger.url}/x.png` })], { channel: 'channel_b' }));
    expect(readSent(foreign)).toContain('[Picture: it is not on a host of the app, so it was not fetched.]');
    expect(asked).toEqual([]);
  });

  it('is reported: files of a channel that is not connected any more, and those beyond the first ten', async () => {
    fakeTelegram.addFile('f1', png);
    const many = await fixture.play([], message(Array.from({ length: 12 }, () => file({ id: 'f1' }))));
    expect(many.session.messages[0]).toMatchObject({ attachments: { length: 10 } });
    expect(readSent(many).match(/\[Picture: only the first 10 files are looked at\.\]/gu)).toHaveLength(2);
    await fixture.scope.channels.disconnect('channel_c');
    const lost = await fixture.play([], message([file({ id: 'f1' })]));
    expect(readSent(lost)).toContain('because the channel is not connected any more');
  });
});

/**
 * The calls without repeats of the first: an app is told again every `everyMs` while the turn runs, on a machine that
 * stands still, too.
 */
function withoutRepeats<Call>(calls: readonly Call[], { sinceMs, everyMs }: { sinceMs: number; everyMs: number }): Call[] {
  let allowed = Math.floor((Date.now() - sinceMs) / everyMs);
  return calls.filter((call, index) => {
    const isRepeat = index > 0 && allowed > 0 && isDeepStrictEqual(call, calls[0]);
    if (isRepeat) allowed -= 1;
    return !isRepeat;
  });
}

describe('typing', () => {
  it('is shown while the turn runs, in the thread of the message', async () => {
    const sinceMs = Date.now();
    beforeAsking = async () => {
      await eventually(() => fakeTelegram.callsTo('/sendChatAction').length > 0);
    };
    await fixture.play([], message([], { text: 'hi', channelMessage: { address: { to: '-100', thread: '7' }, isGroup: true } }));
    const bodies = fakeTelegram.callsTo('/sendChatAction').map(({ body }) => body);
    expect(withoutRepeats(bodies, { sinceMs, everyMs: 4000 })).toEqual([{ chat_id: -100, message_thread_id: 7, action: 'typing' }]);
  });

  it('is shown as an answer to the newest of the messages that are answered together', async () => {
    const sinceMs = Date.now();
    const isTyping = (): unknown[] => fakeMeta.calls.flatMap(({ body }) => (body['status'] === 'read' ? [body['message_id']] : []));
    beforeAsking = async () => {
      await eventually(() => isTyping().length > 0);
    };
    const sessionId = fixture.newSessionId();
    const facts = { channel: 'channel_a', collects: true, sessionId } as const;
    fixture.behind = [await fixture.accept('t_second', message([], { ...facts, text: 'two', channelMessage: { messageRef: 'wamid.2' } }))];
    await fixture.play([], message([], { ...facts, text: 'one', channelMessage: { messageRef: 'wamid.1' } }));
    expect(withoutRepeats(isTyping(), { sinceMs, everyMs: 20_000 })).toEqual(['wamid.2']);
  });

  it('is not shown in a conversation that staff has', async () => {
    const sinceMs = Date.now();
    const sessionId = fixture.newSessionId();
    await fixture.scope.handoffs.request(sessionId, { reason: 'asked', by: { kind: 'operator' } });
    await fixture.play([], message([], { text: 'hi', sessionId }));
    // Its own would have been called before that of a later turn.
    beforeAsking = async () => {
      await eventually(() => fakeTelegram.callsTo('/sendChatAction').length > 0);
    };
    await fixture.play([], message([], { text: 'hi', channelMessage: { address: { to: '492', thread: null } } }));
    const chats = fakeTelegram.callsTo('/sendChatAction').map(({ body }) => body['chat_id']);
    expect(withoutRepeats(chats, { sinceMs, everyMs: 4000 })).toEqual([492]);
  });

  it('does not fail a turn whose channel is not connected, or refuses', async () => {
    fakeTelegram.block(491);
    expect((await fixture.play([], message([], { text: 'hi' }))).session.turns).toMatchObject([{ status: 'done' }]);
    await fixture.scope.channels.disconnect('channel_c');
    expect((await fixture.play([], message([], { text: 'hi' }))).session.turns).toMatchObject([{ status: 'done' }]);
  });
});
