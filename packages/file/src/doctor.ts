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
import { checkOptions, type FileBackendOptions } from './options.ts';

/** Minimum free space in bytes: more than thousands of locks need. */
const LEAST_FREE = 16 * 1024 * 1024;

/** The finding's name and advice, by the code of the failure. */
const FAILURES: Readonly<Record<string, readonly [name: string, toDo: string]>> = {
  FULL: ['disk-full', 'free some space on that disk, or raise the quota'],
  READ_ONLY: ['read-only', 'give all users of the folder the right to write it and all in it'],
  NOT_A_FOLDER: ['no-folder', 'choose another path'],
  FOREIGN_OWNER: ['foreign-owner', 'use the option `shared` in all processes, or a folder of this user'],
  TWO_MACHINES: ['two-machines', 'give each machine a folder of its own, or use a store that has a server'],
  NAMES_TOO_SHORT: ['short-names', 'choose a folder on another disk'],
  VALUE_MISSING: ['value-missing', 'exclude the folder from what cleans up there'],
};

// setup: import { examineFile } from '@locks/file/doctor';
/**
 * Examines the folder of the locks: whether it is on this machine, and has space. Nothing is made in it.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the file system as they are
 * @example
 * ```ts
 * const { findings } = await examineFile('./locks');
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineFile(given: string, options?: FileBackendOptions): Promise<Diagnosis> {
  const { folder } = checkOptions(given, options, 'examineFile()');
  const isUnused = !existsSync(folder);
  let place = folder;
  while (!existsSync(place)) place = dirname(place);
  const { type, bavail, bsize } = statfsSync(place);
  const findings = found(networkFinding(folder, type), spaceFinding(folder, bavail * bsize));
  return { store: 'file', version: undefined, explain, findings, isUnused };
}

function explain(failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  const known = codes.map((code) => FAILURES[code]).find((one) => one !== undefined);
  if (known === undefined) return layoutFinding('file', failure);
  const [name, toDo] = known;
  return error(`file/${name}`, message, toDo);
}

function spaceFinding(folder: string, free: number): Finding | undefined {
  if (free >= LEAST_FREE) return undefined;
  return warning(
    'file/disk-space',
    `the disk of ${folder} has ${free} bytes left: when it is full, locks are refused, and releases too`,
    'free some space',
  );
}
