import { OWN_LOCK } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';
import { onNames } from './on-grants.ts';

/** Faults of stores that map different names to one. */
const narrowings: Readonly<Record<string, readonly [says: string, narrow: (name: string) => string]>> = {
  'names-are-trimmed': ['blanks at the ends are dropped', (name) => name.trim()],
  'names-are-cut-off': ['everything after 256 characters is dropped', (name) => name.slice(0, 256)],
  'names-end-at-nul': ['everything after a NUL is dropped', (name) => name.split('\0')[0] || name],
  'names-ignore-case': ['upper and lower case are one', (name) => name.toLowerCase()],
  'names-are-normalised': ['names of one normal form are one', (name) => name.normalize('NFC')],
  'names-are-hash-tags': ['only the part in braces counts', (name) => /\{([^}]+)\}/.exec(name)?.[1] ?? name],
  'names-are-decoded': ['percent encodings are resolved', decoded],
};

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

let clients = 0;

export const namesMutants: readonly Mutant[] = [
  ...Object.entries(narrowings).map(
    ([name, [says, narrow]]): Mutant => ({
      name,
      says: `${says} in a name`,
      expected: ['names/never-collide'],
      backend: (backend) => onNames(backend, narrow),
    }),
  ),
  {
    name: 'prefixes-are-glued-to-names',
    says: 'nothing stands between a prefix and a name',
    expected: ['names/prefixes-are-apart'],
    joined: (prefix) => prefix,
  },
  {
    name: 'nul-names-are-private',
    says: 'a name with a NUL is another one for every client',
    expected: ['names/exclude-as-written'],
    backend(backend) {
      clients += 1;
      const own = clients;
      return onNames(backend, (name) => (name.includes('\0') ? `${name} of client ${own}` : name));
    },
  },
  {
    name: 'own-names-are-taken',
    says: 'an application may have the lock that a function of these packages needs',
    expected: ['names/own-ones-are-refused'],
    locks: (locks) => ({
      lock: (name, options) => locks.lock(name, Object.assign({ [OWN_LOCK]: true }, options)),
    }),
  },
  {
    name: 'bad-names-are-corrected',
    says: 'a lone surrogate in a name is replaced',
    expected: ['names/bad-ones-are-refused'],
    locks: (locks) => ({
      lock: (name, options) => locks.lock(typeof name === 'string' ? name.toWellFormed() : name, options),
    }),
  },
];
