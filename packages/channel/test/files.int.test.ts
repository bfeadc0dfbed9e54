import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FakeMeta, FakeSlack, FakeTelegram, FakeTwilio, serveRequests } from '@concierge/testing';
import { openSender, providerUrls, type ChannelSender, type FileRequest } from '@concierge/channel';

const bytes = new TextEncoder().encode('the bytes of a picture');
const maxBytes = 1000;
type MediaName = FileRequest['file'];
const signal = new AbortController().signal;
const meta = { accessToken: 'meta-token', appSecret: 'app-secret', phoneNumberId: '1065', pageId: '4042' };
const slack = { botToken: 'xoxb-token', signingSecret: 'signing', teamId: 'T1', botUserId: 'U1' };
let fakeMeta: FakeMeta;
let fakeTelegram: FakeTelegram;
let fakeSlack: FakeSlack;
let nowMs = 0;

beforeEach(async () => {
  fakeMeta = await new FakeMeta({ ...meta, now: () => nowMs }).start();
  fakeTelegram = await new FakeTelegram({ botToken: '7000:token' }).start();
  fakeSlack = await new FakeSlack(slack).start();
});

afterEach(async () => {
  for (const provider of [fakeMeta, fakeTelegram, fakeSlack]) await provider[Symbol.asyncDispose]();
});

function senders(): Readonly<Record<'whatsapp' | 'messenger' | 'telegram' | 'slack', ChannelSender>> {
  const options = { urls: { ...providerUrls, metaGraph: fakeMeta.url, telegram: fakeTelegram.url, slack: fakeSlack.url } };
  const settings = { ...meta, verifyToken: 'v' };
  return {
    whatsapp: openSender({ channel: 'channel_a', settings }, options),
    messenger: openSender({ channel: 'channel_b', settings }, options),
    telegram: openSender({ channel: 'channel_c', settings: { botToken: '7000:token', secretToken: 's' } }, options),
    slack: openSender({ channel: 'channel_d', settings: slack }, options),
  };
}

const named = (id: string): MediaName => ({ id, url: null });
const at = (url: string): MediaName => ({ id: null, url });

const failure = (name: string): unknown => expect.objectContaining({ name: 'FileUnavailableError', failure: name });

describe('a file that a contact sent', () => {
  it('comes from Twilio’s store, where its API leads', async () => {
    const account = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'twilio-token' };
    await using fakeTwilio = await new FakeTwilio({ ...account, senders: [] }).start();
    const urls = { ...providerUrls, twilio: fakeTwilio.url };
    fakeTwilio.addMedia('ME1', { bytes, contentType: 'image/jpeg' });
    const sender = openSender({ channel: 'channel_e', settings: account }, { urls });
    const file = await sender.fetchFile({ file: at(fakeTwilio.mediaUrl('ME1')), maxBytes }, signal);
    expect(file).toEqual({ bytes: Buffer.from(bytes), contentType: 'image/jpeg' });
    expect(fakeTwilio.calls.map(({ path }) => path)).toEqual([new URL(fakeTwilio.mediaUrl('ME1')).pathname, '/store/ME1']);
    await expect(sender.fetchFile({ file: at('https://evil.example/x'), maxBytes }, signal)).rejects.toEqual(failure('host_not_allowed'));
  });

  it('comes from WhatsApp in two steps', async () => {
    fakeMeta.addMedia('m1', { bytes, contentType: 'image/jpeg' });
    expect(await senders().whatsapp.fetchFile({ file: named('m1'), maxBytes }, signal)).toEqual({
      bytes: Buffer.from(bytes),
      contentType: 'image/jpeg',
    });
    expect(fakeMeta.calls[0]?.query.get('phone_number_id')).toBe('1065');
  });

  it('comes from Messenger without a token being shown', async () => {
    fakeMeta.addMedia('m1', { bytes, contentType: 'image/jpeg' });
    const file = await senders().messenger.fetchFile({ file: at(fakeMeta.publicUrl('m1')), maxBytes }, signal);
    expect(file).toEqual({ bytes: Buffer.from(bytes), contentType: 'image/jpeg' });
    expect(fakeMeta.callsTo('/m1').map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it('comes from Telegram', async () => {
    fakeTelegram.addFile('f1', bytes);
    const file = await senders().telegram.fetchFile({ file: named('f1'), maxBytes }, signal);
    expect(file.bytes).toEqual(Buffer.from(bytes));
  });

  it('comes from Slack by its address and by its id', async () => {
    fakeSlack.addFile('F0123456', { bytes, contentType: 'image/png' });
    for (const file of [at(fakeSlack.fileUrl('F0123456')), named('F0123456')]) {
      expect(await senders().slack.fetchFile({ file, maxBytes }, signal)).toEqual({
        bytes: Buffer.from(bytes),
        contentType: 'image/png',
      });
    }
  });

  it('is gone where the provider does not have it', async () => {
    for (const app of ['whatsapp', 'telegram'] as const)
      await expect(senders()[app].fetchFile({ file: named('nothing'), maxBytes }, signal)).rejects.toEqual(failure('gone'));
    await expect(senders().slack.fetchFile({ file: named('F0000000'), maxBytes }, signal)).rejects.toEqual(failure('gone'));
  });

  it('is not read beyond what may be kept', async () => {
    fakeMeta.addMedia('m1', { bytes, contentType: 'image/jpeg' });
    fakeTelegram.addFile('f1', bytes);
    fakeTelegram.addFile('huge', new Uint8Array(21 * 1024 * 1024));
    fakeSlack.addFile('F0123456', { bytes, contentType: 'image/png' });
    const { whatsapp, telegram, slack: fromSlack } = senders();
    await expect(whatsapp.fetchFile({ file: named('m1'), maxBytes: 10 }, signal)).rejects.toEqual(failure('too_large'));
    await expect(telegram.fetchFile({ file: named('f1'), maxBytes: 10 }, signal)).rejects.toEqual(failure('too_large'));
    await expect(telegram.fetchFile({ file: named('huge'), maxBytes: 1e9 }, signal)).rejects.toEqual(failure('too_large'));
    await expect(fromSlack.fetchFile({ file: named('F0123456'), maxBytes: 10 }, signal)).rejects.toEqual(failure('too_large'));
  });

  it('cannot be fetched when the message has no address for it', async () => {
    for (const sender of Object.values(senders()))
      await expect(sender.fetchFile({ file: { id: null, url: null }, maxBytes }, signal)).rejects.toEqual(failure('gone'));
  });

  it('is not the page on which Slack asks people to log in', async () => {
    const stranger = openSender(
      { channel: 'channel_d', settings: { ...slack, botToken: 'wrong' } },
      { urls: { ...providerUrls, metaGraph: fakeMeta.url, telegram: fakeTelegram.url, slack: fakeSlack.url } },
    );
    await expect(stranger.fetchFile({ file: at(fakeSlack.fileUrl('F1')), maxBytes }, signal)).rejects.toEqual(failure('refused'));
  });

  it.each([
    'https://evil.example/x.png',
    'https://slack.com.evil.example/x.png',
    'https://notslack.com/x',
    'http://files.slack.com/x',
    'https://files.slack.com:8443/x',
    'https://user:pass@files.slack.com/x',
    'file:///etc/passwd',
    'not a url',
  ])('is not looked for on a host that is not the provider’s: %s', async (reference) => {
    for (const app of ['slack', 'messenger'] as const)
      await expect(senders()[app].fetchFile({ file: at(reference), maxBytes }, signal)).rejects.toEqual(failure('host_not_allowed'));
  });

  it('is not followed to another host, nor is the token', async () => {
    const seen: string[] = [];
    await using elsewhere = await serveRequests((request) => {
      seen.push(request.url);
      return new Response('stolen');
    });
    await using redirecting = await serveRequests(() => Response.redirect(elsewhere.url, 302));
    const sender = openSender({ channel: 'channel_d', settings: slack }, { urls: { ...providerUrls, slack: redirecting.url } });
    await expect(sender.fetchFile({ file: at(redirecting.url), maxBytes }, signal)).rejects.toEqual(failure('host_not_allowed'));
    expect(seen).toEqual([]);
  });

  it('is not to be had when the address of WhatsApp has expired', async () => {
    fakeMeta.addMedia('m1', { bytes, contentType: 'image/jpeg' });
    const place = await fetch(`${fakeMeta.url}/m1`, { headers: { authorization: 'Bearer meta-token' } });
    const { url } = Object(await place.json());
    nowMs += 6 * 60_000;
    const late = await fetch(String(url), { headers: { authorization: 'Bearer meta-token' } });
    expect(late.status).toBe(404);
    // A new address is asked for each time.
    expect(await senders().whatsapp.fetchFile({ file: named('m1'), maxBytes }, signal)).toMatchObject({ contentType: 'image/jpeg' });
  });
});
