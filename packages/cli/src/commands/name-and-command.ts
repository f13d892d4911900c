import { UsageError } from '../usage-error.ts';

/** The name and the command of `locks run NAME -- COMMAND` and `locks once NAME -- COMMAND`. */
export interface NameAndCommand {
  readonly name: string;
  readonly command: readonly string[];
}

/** @throws UsageError */
export function readNameAndCommand(
  caller: string,
  operands: readonly string[],
  command: readonly string[],
): NameAndCommand {
  const [name, ...more] = operands;
  if (name === undefined) throw new UsageError(`${caller}: the name of the lock is missing`);
  if (more.length > 0)
    throw new UsageError(`${caller}: "${more.join(' ')}" stands before --: the command stands behind it`);
  if (command.length === 0)
    throw new UsageError(`${caller}: the command is missing: locks ${caller} NAME -- COMMAND`);
  if (command[0] === '') throw new UsageError(`${caller}: the command is empty`);
  return { name, command };
}

/**
 * Minimum wait in milliseconds, however long the start and the connection took: the store still answers whether the lock is
 * free.
 */
const LEAST_WAIT_MS = 1_000;

/** The rest of a wait in milliseconds. The wait began at `startedAt`, a time of `performance.now()`. */
export function leftOf(waitMs: number, startedAt: number): number {
  const leftMs = Math.round(waitMs - (performance.now() - startedAt));
  return Math.max(leftMs, Math.min(waitMs, LEAST_WAIT_MS));
}
