import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  type Diagnosis,
  error,
  failureOf,
  type Finding,
  found,
  layoutFinding,
  warning,
} from '@locks/core/doctor';
import { networkFinding } from './network-finding.ts';
import { checkOptions, type SqliteBackendOptions } from './options.ts';

/** Minimum free space in bytes: more than thousands of locks and the log need. */
const LEAST_FREE = 16 * 1024 * 1024;

/** The finding's name and advice, by the code of the failure. */
const FAILURES: Readonly<Record<string, readonly [name: string, toDo: string]>> = {
  FULL: ['disk-full', 'free some space on that disk, or raise the quota'],
  READ_ONLY: ['read-only', 'give all users of the file the right to write it and its folder'],
  CANNOT_OPEN: ['cannot-open', 'do what the message says, or choose another path'],
  FOREIGN_FILE: ['foreign-file', 'choose another path'],
  CORRUPT: ['corrupt', 'stop all users of the file, delete it, and start them again'],
  TWO_MACHINES: ['two-machines', 'give each machine a file of its own, or use a store that has a server'],
  BUSY: ['busy', 'find out who keeps a transaction open on the file'],
};

// setup: import { examineSqlite } from '@locks/sqlite/doctor';
/**
 * Examines the folder of the lock file: whether it is on this machine, and has space. The file is neither opened nor made.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the file system as they are
 * @example
 * ```ts
 * const { findings } = await examineSqlite('./locks.db');
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineSqlite(given: string, options?: SqliteBackendOptions): Promise<Diagnosis> {
  const { path } = checkOptions(given, options, 'examineSqlite()');
  const examined = { store: 'sqlite', version: process.versions['sqlite'], explain };
  const folder = dirname(path);
  if (!existsSync(folder)) {
    const missing = error('sqlite/cannot-open', `there is no folder ${folder}`, 'make it');
    return { ...examined, findings: [missing] };
  }
  const { type, bavail, bsize } = statfsSync(folder);
  const findings = found(networkFinding(folder, type), spaceFinding(folder, bavail * bsize));
  return { ...examined, findings, isUnused: !existsSync(path) };
}

function explain(failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  // The step waits for the file until the caller's time is over.
  const busy = message.includes('no answer within') ? ['BUSY'] : [];
  const known = [...codes, ...busy].map((code) => FAILURES[code]).find((one) => one !== undefined);
  if (known === undefined) return layoutFinding('sqlite', failure);
  const [name, toDo] = known;
  return error(`sqlite/${name}`, message, toDo);
}

function spaceFinding(folder: string, free: number): Finding | undefined {
  if (free >= LEAST_FREE) return undefined;
  return warning(
    'sqlite/disk-space',
    `the disk of ${folder} has ${free} bytes left: when it is full, locks are refused, and releases too`,
    'free some space',
  );
}
