import { resolve } from 'node:path';
import {
  milliseconds,
  oneOf,
  optional,
  type OptionTable,
  readClient,
  readOptions,
} from '@locks/core/backend';

/** The options of `fileBackend`. */
export interface FileBackendOptions {
  /**
   * Whether other users of the machine may use the folder: all of it is made so that everybody may write it, whatever the umask. Who may write
   * the folder controls the locks. Without it the folder of another user is refused.
   *
   * @defaultValue false
   */
  readonly shared?: boolean;
  /**
   * Whether a process that waits watches a file by which others wake it. `false`: it polls only.
   *
   * @defaultValue true
   */
  readonly watch?: boolean;
  /**
   * The longest pause in milliseconds between two polls of a process that waits and cannot be woken, 1 to 1000. One that can be polls
   * twice a second.
   *
   * @defaultValue 25
   */
  readonly maxPollMs?: number;
}

export interface CheckedFileOptions {
  readonly folder: string;
  readonly shared: boolean;
  readonly watch: boolean;
  readonly maxPollMs: number;
}

const TABLE = {
  shared: optional(oneOf(true, false), false),
  watch: optional(oneOf(true, false), true),
  maxPollMs: optional(milliseconds(1, 1_000), 25),
} satisfies OptionTable<FileBackendOptions>;

const ELSEWHERE = { folder: 'the first argument', path: 'the first argument' };

export function checkOptions(
  folder: unknown,
  options: FileBackendOptions | undefined,
  caller = 'fileBackend()',
): CheckedFileOptions {
  const path = readClient(caller, 'folder', folder, 'the path of a folder that all processes share', isPath);
  // The absolute path: the process may change its folder before the first lock.
  return { folder: resolve(path), ...readOptions(caller, options, TABLE, ELSEWHERE) };
}

export function isPath(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}
