import { setTimeout as sleep } from 'node:timers/promises';
import type { BackendCapabilities, LockMode } from '@locks/core/backend';
import { machineNow } from '@locks/core/conformance/process';
import type { HistoryRecorder, RecordedHold } from '@locks/history';
import { LIMIT, NAMES } from '../names.ts';
import type { ExaminedLease, ExaminedLocks } from './locks-of-module.ts';
import type { Fact, LoopTimes } from './worker-commands.ts';

export interface LoopContext extends LoopTimes {
  readonly locks: ExaminedLocks;
  readonly recorder: HistoryRecorder;
  readonly note: (fact: Fact) => void;
  /** The locks that are held exclusively, and for some time. */
  readonly held: Set<string>;
  /** Whether sections are to end soon. */
  readonly isStopping: () => boolean;
  readonly prefix: string;
}

type Round = (context: LoopContext) => Promise<void>;

interface Loop {
  readonly mode: LockMode['kind'];
  readonly names: readonly string[];
  readonly round: Round;
}

const EXCLUSIVE: LockMode = { kind: 'exclusive' };
/** Between two rounds of a loop: a store is to be examined, and not to be loaded. */
const PAUSE_MS = 10;
/** A worker that holds for longer than this can be killed meanwhile. */
const LONG_MS = 30;

/** What every worker does all the time, each line in a loop of its own. */
const LOOPS: readonly Loop[] = [
  // Held briefly, by waiters that come and go.
  ...NAMES.brief.map(
    (name): Loop => ({
      mode: 'exclusive',
      names: [name],
      round: (context) => section(context, name, EXCLUSIVE, 5 + 20 * Math.random()),
    }),
  ),
  // Held for longer than a hold lasts without a renewal.
  {
    mode: 'exclusive',
    names: [NAMES.renewed],
    round: (context) => section(context, NAMES.renewed, EXCLUSIVE, (1.3 + Math.random()) * context.ttlMs),
  },
  // Several wait, so that their order shows: two loops of each worker.
  ...[1, 2].map(
    (): Loop => ({
      mode: 'exclusive',
      names: [NAMES.queue],
      round: (context) => section(context, NAMES.queue, EXCLUSIVE, 40 + 60 * Math.random()),
    }),
  ),
  { mode: 'exclusive', names: [NAMES.hurried], round: hurried },
  {
    mode: 'shared',
    names: [NAMES.readersWriter],
    round(context) {
      const kind = Math.random() < 0.3 ? 'exclusive' : 'shared';
      return section(context, NAMES.readersWriter, { kind }, 40 * Math.random());
    },
  },
  {
    mode: 'permit',
    names: [NAMES.permits],
    round(context) {
      const weight = Math.random() < 0.3 ? 2 : 1;
      return section(context, NAMES.permits, { kind: 'permit', weight, limit: LIMIT }, 40 * Math.random());
    },
  },
];

/** The rounds that the locks can do, by the modes that they declare. */
export function loopsOf(context: LoopContext): (() => Promise<void>)[] {
  return possible(context.locks.capabilities).map(({ round }) => async () => {
    await round(context);
    await sleep(PAUSE_MS * Math.random());
  });
}

/** The names that the loops use. */
export function namesOf(capabilities: BackendCapabilities): string[] {
  return [...new Set(possible(capabilities).flatMap(({ names }) => names))];
}

function possible({ modes }: BackendCapabilities): readonly Loop[] {
  return LOOPS.filter(({ mode }) => modes.includes(mode));
}

/** A critical section in which the holder looks at its lease now and then. */
async function section(context: LoopContext, name: string, mode: LockMode, heldMs: number): Promise<void> {
  const hold = await acquire(context, name, mode, { waitMs: context.patienceMs });
  if (hold === undefined) return;
  const isLong = mode.kind === 'exclusive' && heldMs > LONG_MS;
  if (isLong) context.held.add(name);
  const looks = Math.max(2, Math.ceil((8 * heldMs) / context.ttlMs));
  for (let look = 0; look < looks; look += 1) {
    await sleep(heldMs / looks);
    // A loss that was told ends the work of a careful holder, and its release says so.
    if (hold.lease.signal?.aborted === true || context.isStopping()) break;
    hold.confirm();
  }
  context.held.delete(name);
  noteLoss(context, hold);
  await hold.release(() => hold.lease.release());
}

function noteLoss(
  { note }: LoopContext,
  { lease, resource, acquisitionId }: RecordedHold<ExaminedLease>,
): void {
  const { aborted, reason } = lease.signal ?? {};
  if (aborted !== true) return;
  const told = (reason as { reason?: unknown } | undefined)?.reason;
  note({ kind: 'loss', resource, acquisitionId, reason: String(told) });
}

/** Waits that end before the lock is free, by their time or by an abort. */
async function hurried(context: LoopContext): Promise<void> {
  const isAborted = !context.locks.isOther && Math.random() < 0.4;
  // A wait of 0 is a single attempt, which `answerMs` limits.
  const waitMs = isAborted ? context.patienceMs : 1 + Math.round(80 * Math.random());
  const abortAfterMs = isAborted ? 80 * Math.random() : undefined;
  const hold = await acquire(context, NAMES.hurried, EXCLUSIVE, { waitMs, abortAfterMs });
  if (hold === undefined) return;
  await sleep(30 * Math.random());
  hold.confirm();
  await hold.release(() => hold.lease.release());
}

interface Wait {
  readonly waitMs: number;
  readonly abortAfterMs?: number | undefined;
}

async function acquire(
  { locks, recorder, note, prefix, ttlMs }: LoopContext,
  name: string,
  mode: LockMode,
  { waitMs, abortAfterMs }: Wait,
): Promise<RecordedHold<ExaminedLease> | undefined> {
  const resource = `${prefix}${name}`;
  const controller = new AbortController();
  let abortedAt: number | undefined;
  const abort = (): void => {
    abortedAt = machineNow();
    controller.abort();
  };
  const timer = abortAfterMs === undefined ? undefined : setTimeout(abort, abortAfterMs);
  const askedAt = machineNow();
  let outcome: 'granted' | 'refused' | 'failed' = 'failed';
  try {
    const limits = { ttlMs, waitMs, ...(timer !== undefined && { signal: controller.signal }) };
    const hold = await recorder.acquire(resource, () => locks.acquire(resource, mode, limits), mode);
    outcome = hold === undefined ? 'refused' : 'granted';
    return hold;
  } catch (error) {
    if (/^LOCK_(TIMEOUT|CONTENDED)$/.test(String((error as { code?: unknown }).code))) outcome = 'refused';
    throw error;
  } finally {
    clearTimeout(timer);
    const waited = { askedAt, endedAt: machineNow(), waitMs, outcome };
    note({ kind: 'wait', resource, ...waited, ...(abortedAt !== undefined && { abortedAt }) });
  }
}
