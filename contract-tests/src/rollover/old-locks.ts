import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Address } from '@locks/core/conformance/proxy';
import type { Library } from '../harnesses/redis/open-client.ts';
import type { PeerName } from '../lab/peers/peer-names.ts';
import { missingFor } from './lock-process.ts';

type Command = readonly [string, ...string[]];

/** A lock on Redis that applications have today, and what ours needs beside it. */
export interface OldLock {
  readonly name: string;
  /** What stands before the name in the library's key, and in the name of our lock: docs/guides/migrating.md. */
  readonly prefix: string;
  /** Builds its program, where that is needed. @returns what is missing on this machine, in a sentence */
  build?(): Promise<string | undefined>;
  /** The command of a process with one client. */
  command(at: Address, ttlMs: number): Command;
}

const sources = fileURLToPath(new URL('.', import.meta.url));
const built = fileURLToPath(new URL('../../../.tools/rollover/', import.meta.url));
const redsync = path.join(built, 'redsync');
const python = path.join(built, 'redis-py/bin/python');

function onNode(name: string, peer: PeerName, prefix: string): OldLock {
  return { name, prefix, command: (at, ttlMs) => nodeHolder(peer, at, ttlMs) };
}

function nodeHolder(library: string, { host, port }: Address, ...options: readonly unknown[]): Command {
  const program = path.join(sources, 'node-holder.ts');
  return [process.execPath, program, library, `${host}:${port}`, ...options.map(String)];
}

/** The command of a process with locks of ours. */
export function ourCommand(
  library: Library,
  at: Address,
  { ttlMs, prefix, maxPollMs }: Readonly<Record<'ttlMs' | 'maxPollMs', number>> & { prefix: string },
): Command {
  return nodeHolder(library, at, ttlMs, prefix, maxPollMs);
}

export const oldLocks: readonly OldLock[] = [
  onNode('redlock 4', 'redlock-4', ''),
  onNode('redlock 5', 'redlock', ''),
  onNode('@sesamecare-oss/redlock', 'redlock-sesamecare', ''),
  onNode('redlock-universal', 'redlock-universal', ''),
  onNode('redis-semaphore', 'redis-semaphore', 'mutex:'),
  onNode('simple-redis-mutex', 'simple-redis-mutex', '@simple-redis-mutex:lock-'),
  onNode('@verrou/core', 'verrou', ''),
  onNode('SET NX PX by hand', 'set-nx-px', ''),
  {
    name: 'redsync',
    prefix: '',
    build: () => missingFor(path.join(sources, 'redsync'), 'go', 'build', '-o', redsync, '.'),
    command: ({ host, port }, ttlMs) => [redsync, `${host}:${port}`, String(ttlMs)],
  },
  {
    name: 'redis-py',
    prefix: '',
    async build() {
      if (existsSync(python)) return undefined;
      mkdirSync(built, { recursive: true });
      const folder = path.join(sources, 'redis-py');
      return (
        (await missingFor(folder, 'python3', '-m', 'venv', path.join(built, 'redis-py'))) ??
        (await missingFor(folder, python, '-m', 'pip', 'install', '-q', '-r', 'requirements.txt'))
      );
    },
    command: ({ host, port }, ttlMs) => [
      python,
      path.join(sources, 'redis-py/holder.py'),
      `${host}:${port}`,
      String(ttlMs),
    ],
  },
];
