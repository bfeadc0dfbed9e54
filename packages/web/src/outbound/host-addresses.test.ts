import { describe, expect, it } from '@jest/globals';
import ipaddr from 'ipaddr.js';
import { isPublicAddress } from './host-addresses.ts';

const privateRanges: Readonly<Record<string, readonly string[]>> = {
  'this network': ['0.0.0.0', '0.1.2.3', '::'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  'private networks': ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1', 'fdff:ffff::1'],
  'shared address space': ['100.64.0.1', '100.127.255.255'],
  'link-local, cloud metadata': ['169.254.169.254', 'fe80::1', 'febf::1', 'fec0::1', 'fd00:ec2::254'],
  'protocol assignments': ['192.0.0.1', '192.0.0.170', '192.88.99.1', '2001::1', '2001:1ff:ffff::1'],
  documentation: ['192.0.2.1', '198.51.100.7', '203.0.113.9', '2001:db8::1', '3fff::1', '3fff:fff:ffff::1'],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  'reserved, broadcast': ['240.0.0.1', '255.255.255.255'],
  'IPv4 inside IPv6': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:8.8.8.8',
    '::ffff:0:127.0.0.1',
    '::127.0.0.1',
    '::7f00:1',
    '::8.8.8.8',
    '64:ff9b::127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::7f00:1',
    '2002:7f00:1::',
    '2002:c0a8:101::1',
  ],
  'not given out': ['100::1', '4000::1', '5f00::1', '8000::1', 'e000::1', '1::1'],
};

describe('an address is public', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '93.184.215.14',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00:1450::1',
  ])('for one of the open internet: %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it.each(Object.entries(privateRanges))('never for %s', (_range, addresses) => {
    expect(addresses.filter((address) => isPublicAddress(address))).toEqual([]);
  });

  it.each([
    '127.1',
    '0x7f000001',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '2130706433',
    '017700000001',
    '8.8.8',
    '8.8.8.8 ',
    'fe80::1%eth0',
    '2606:4700::1%1',
    '',
    'localhost',
    '１.1.1.1',
  ])('only in the form that resolvers give: not %s', (spelling) => {
    expect(isPublicAddress(spelling)).toBe(false);
  });

  it('more strictly than the library, which takes unassigned ranges for unicast', () => {
    expect(ipaddr.parse('::7f00:1').range()).toBe('unicast');
    expect(ipaddr.parse('4000::1').range()).toBe('unicast');
  });
});
