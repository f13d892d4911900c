import { expect, it } from 'vitest';
import { labelValue, leaseName } from '../src/lease-name.ts';

const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

const KEYS = [
  'locks/lock/report',
  'locks/lock/nightly-report',
  'locks/lock/a/b',
  'locks/lock/a.b',
  'locks/lock/a-b',
  'locks/lock/a--b',
  'locks/lock/A-b',
  'locks/lock/a_b',
  'locks/lock/-a',
  'locks/lock/a-',
  'locks/lock/',
  'locks/lock//',
  'locks/lock/.',
  'locks/lock/..',
  'locks/lock/🔒',
  'locks/lock/\n',
  'locks/lock/ ',
  `locks/lock/${'a'.repeat(512)}`,
  `locks/lock/${'a'.repeat(511)}b`,
  `locks/lock/${'ä'.repeat(256)}`,
  `locks/lock/${'-'.repeat(512)}`,
  `locks/lock/${'a/'.repeat(256)}`,
  '/lock/x',
  'lock/x',
  '🔒',
  '',
];

it('gives every key a name of its own, which Kubernetes allows', () => {
  const names = KEYS.map(leaseName);
  for (const name of names) {
    expect(name).toMatch(SUBDOMAIN);
    expect(name.length).toBeLessThanOrEqual(253);
  }
  expect(new Set(names).size).toBe(KEYS.length);
});

it('can be read', () => {
  expect(leaseName('locks/lock/nightly-report')).toBe('locks.lock.nightly-report');
  expect(leaseName('locks/lock/SKU 42')).toMatch(/^locks\.lock\.sku-42--[0-9a-f]{40}$/);
});

it('has no plain key with the name of another one', () => {
  const [, hash = ''] = leaseName('locks/lock/a b').split('--');
  expect(leaseName(`locks/lock/a-b--${hash}`)).not.toBe(leaseName('locks/lock/a b'));
  expect(leaseName(`locks/lock/a-b/${hash}`)).not.toBe(leaseName('locks/lock/a b'));
});

it('gives values of labels that Kubernetes allows', () => {
  const values = KEYS.map(labelValue);
  for (const value of values) {
    expect(value).toMatch(LABEL);
    expect(value.length).toBeLessThanOrEqual(63);
  }
  expect(new Set(values).size).toBe(KEYS.length);
  expect(labelValue('locks/lock')).toBe('locks.lock');
});
