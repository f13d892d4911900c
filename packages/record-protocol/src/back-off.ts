import { setTimeout as sleep } from 'node:timers/promises';
import { NoAnswerError } from '@locks/core/backend';
import type { LockRow } from './lock-row.ts';
import { areNewcomers, type RowStep, type RowWriter } from './row-writer.ts';

const MAX_TRIES = 200;
/** The longest pause of a holder between two tries, in times of a write. */
const MOST_WRITES = 4;
/** The number of tries of a holder without a pause. */
const QUICK_TRIES = 4;
/** So many waiters are a crowd. */
const CROWD = 16;
/** After so many conflicts newcomers are a crowd that has not come in yet. */
const CROWD_CONFLICTS = 6;
/** The longest pause of newcomers where few wait, in times of a write; it falls with each conflict, so that none loses many turns. */
const FEW_WRITES = 8;
/** The longest pause of newcomers, in times of a write; it grows by one with each that waits. */
const LEAST_WRITES = 8;
/** The longest pause of newcomers, in milliseconds. */
const MOST_MS = 1_000;

/** What has become of the tries so far. */
export interface Tries {
  /** The number of the try that comes. */
  readonly tries: number;
  /** How many were refused since another process had written. */
  readonly conflicts: number;
  /** Whether the last one was. */
  readonly wasRefused: boolean;
}

/**
 * Waits between two tries, and returns whether it did: what was read before is stale then. Newcomers of a crowd wait twice
 * as long after each conflict, for longer where the queue is long, so that the writes of holders, and of those whose turn it is, find the
 * row unchanged; those wait after a few tries, and never for long.
 *
 * @throws NoAnswerError where the row changes for longer than the calls last
 */
export async function pauseBefore(
  { tries, conflicts, wasRefused }: Tries,
  batch: readonly RowStep[],
  writer: RowWriter,
): Promise<boolean> {
  const { writeMs, known, pending } = writer;
  const overdue = batch.every(({ call }) => call.now() >= call.deadline);
  if ((tries > QUICK_TRIES && overdue) || tries > MAX_TRIES) {
    throw new NoAnswerError(`the row changed under each of ${tries - 1} tries`);
  }
  const oneMs = Math.max(writeMs, 1);
  if (!areNewcomers(batch)) {
    if (tries <= QUICK_TRIES) return false;
    await sleep(Math.random() * Math.min(2 ** (tries - QUICK_TRIES), MOST_WRITES) * oneMs);
    return true;
  }
  if (!wasRefused) return false;
  // A release, or an abandon, of this process does not wait behind its newcomers: it joins them.
  if (!areNewcomers(pending)) return true;
  if (!isCrowd(known, conflicts)) {
    // The try after a refused one knows the row as it is: a pause would make it stale.
    if (conflicts % 2 === 1) return false;
    await writer.pause((Math.random() * FEW_WRITES * oneMs) / conflicts);
    return true;
  }
  const waiting = known?.waiters.length ?? 0;
  const pauseMs = oneMs * Math.min(2 ** conflicts, LEAST_WRITES + waiting);
  const leftMs = batch.reduce((most, { call }) => Math.max(most, call.deadline - call.now()), 0);
  await writer.pause((0.25 + Math.random()) * Math.min(pauseMs, MOST_MS, leftMs / 4));
  return true;
}

/** Whether so many want to write that newcomers leave the row alone for a while after a conflict, and read it after that. */
export function isCrowd(known: LockRow | undefined, conflicts: number): boolean {
  return conflicts > CROWD_CONFLICTS || (known?.waiters.length ?? 0) >= CROWD;
}
