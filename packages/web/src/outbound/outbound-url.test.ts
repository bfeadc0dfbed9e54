import { describe, expect, it } from '@jest/globals';
import { OutboundError } from './outbound-error.ts';
import { readHostPort, readHost, isWebPort, toHostPort, readOutboundUrl } from './outbound-url.ts';

describe('an address from outside', () => {
  it.each([
    ['http://127.1/', '127.0.0.1'],
    ['http://0x7f000001/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://017700000001/', '127.0.0.1'],
    ['http://127.0.0.1./', '127.0.0.1'],
    ['http://127。0。0。1/', '127.0.0.1'],
    ['http://１２７.0.0.1/', '127.0.0.1'],
    ['http://ⓛocalhost/', 'localhost'],
    ['http://%6c%6f%63alhost/', 'localhost'],
    ['http://[::ffff:7f00:1]/', '::ffff:7f00:1'],
    ['http://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['http://[0:0:0:0:0:0:0:1]/', '::1'],
    ['http:127.0.0.1/', '127.0.0.1'],
    ['http:\\\\127.0.0.1\\', '127.0.0.1'],
    ['ht\ntp://127.0.\t0.1/', '127.0.0.1'],
    ['http://example.com\\@127.0.0.1/', 'example.com'],
    ['http://example.com#@127.0.0.1/', 'example.com'],
    ['http://example.com?@127.0.0.1/', 'example.com'],
    ['https://EXAMPLE.com./a#b', 'example.com'],
    ['https://bücher.example/', 'xn--bcher-kva.example'],
  ])('is read once, and %j names the host %s', (text, host) => {
    expect(readHost(readOutboundUrl(text))).toBe(host);
  });

  it.each([
    'file:///etc/passwd',
    'gopher://127.0.0.1:6379/_FLUSHALL',
    'ftp://example.com/',
    'data:text/html,hello',
    'javascript:alert(1)',
    'ws://example.com/',
    'blob:https://example.com/1',
    'unix:/var/run/docker.sock',
    'https://user@example.com/',
    'https://user:secret@example.com/',
    'https://:secret@example.com/',
    'http://[fe80::1%25eth0]/',
    'http://[fe80::1%eth0]/',
    'http://256.256.256.256/',
    'http://example.com:99999/',
    'http://exa mple.com/',
    'http://example..../',
    'http://',
    '/relative',
    'example.com',
    '',
    `https://example.com/${'a'.repeat(5000)}`,
  ])('is refused: %j', (text) => {
    expect(() => readOutboundUrl(text)).toThrow(expect.objectContaining({ failure: 'bad_url' }));
    expect(() => readOutboundUrl(text)).toThrow(OutboundError);
  });

  it('keeps its query and loses its fragment', () => {
    expect(readOutboundUrl('https://example.com/a?b=c#d').href).toBe('https://example.com/a?b=c');
  });
});

describe('ports', () => {
  it('of the web and above 1023 are open, those of mail, shells and databases are not', () => {
    expect([80, 443, 3000, 8080, 8443].filter((port) => !isWebPort(port))).toEqual([]);
    expect([0, 22, 25, 53, 110, 587, 3306, 5432, 6379, 11211].filter((port) => isWebPort(port))).toEqual([]);
  });
});

describe('a place that the operator allows', () => {
  it('is compared as URLs are', () => {
    expect(readHostPort('Example.com:80')).toBe(toHostPort(readOutboundUrl('http://example.com./')));
    expect(readHostPort('127.0.0.1:8443')).toBe(toHostPort(readOutboundUrl('https://0x7f.1:8443/x')));
    expect(readHostPort('[::1]:443')).toBe(toHostPort(readOutboundUrl('https://[::1]/')));
  });

  it.each(['example.com', 'http://example.com:80', 'example.com:80/path', 'me@example.com:80', ':80', 'example.com:', '*:80:80'])(
    'is a host and a port: not %s',
    (entry) => {
      expect(() => readHostPort(entry)).toThrow(/host:port|host/u);
    },
  );
});
