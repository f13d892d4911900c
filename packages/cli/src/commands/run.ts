import type { AcquireOptions, Lease, LockManager } from '@locks/core';
import { type OptionValues, textOf } from '../command-line.ts';
import { readDuration } from '../duration.ts';
import { EXIT } from '../exit-codes.ts';
import { type CommandGuardian, startGuardian } from '../guardian/start-guardian.ts';
import { UsageError } from '../usage-error.ts';
import { ForwardedSignals } from './forwarded-signals.ts';
import { runGuarded } from './guarded-command.ts';
import { leftOf, type NameAndCommand, readNameAndCommand } from './name-and-command.ts';

const DEFAULT_TTL_MS = 30_000;

export interface RunPlan extends NameAndCommand {
  readonly kind: 'exclusive' | 'shared' | { readonly permits: number };
  readonly ttlMs: number;
  readonly waitMs: number;
  /** The start of the wait, before the store was opened: a time of `performance.now()`. */
  readonly startedAt: number;
  readonly label: string | undefined;
}

/** @throws UsageError */
export function readRunPlan(
  operands: readonly string[],
  command: readonly string[],
  values: OptionValues,
): RunPlan {
  const nameAndCommand = readNameAndCommand('run', operands, command);
  const [wait, ttl, permits] = ['wait', 'ttl', 'permits'].map((option) => textOf(values, option));
  if (wait !== undefined && values['no-wait'] === true)
    throw new UsageError('run: --wait and --no-wait contradict each other: give one of them');
  if (permits !== undefined && values['shared'] === true)
    throw new UsageError('run: --shared and --permits contradict each other: give one of them');
  return {
    ...nameAndCommand,
    kind:
      permits === undefined
        ? values['shared'] === true
          ? 'shared'
          : 'exclusive'
        : { permits: Number(permits) },
    ttlMs: ttl === undefined ? DEFAULT_TTL_MS : readDuration('--ttl', ttl),
    waitMs:
      values['no-wait'] === true
        ? 0
        : wait === undefined
          ? Number.POSITIVE_INFINITY
          : readDuration('--wait', wait),
    startedAt: performance.now(),
    label: textOf(values, 'label'),
  };
}

/** Runs the command while the lock is held. Gives the exit code. */
export async function run(locks: LockManager, plan: RunPlan, say: (text: string) => void): Promise<number> {
  const signals = new ForwardedSignals();
  try {
    // The guardian starts before the lock is taken: nothing may delay the guard of a command that runs.
    const guardian = await startGuardian();
    try {
      const lease = await signals.duringWait((signal) => acquire(locks, plan, signal));
      if (lease === undefined) return EXIT.signal + signals.number;
      return await underLease(lease, plan, guardian, signals, say);
    } finally {
      await guardian.done();
    }
  } finally {
    signals.close();
  }
}

function acquire(locks: LockManager, plan: RunPlan, signal: AbortSignal): Promise<Lease> {
  const { name, kind, ttlMs, waitMs, startedAt, label } = plan;
  const options: AcquireOptions = { ttlMs, waitMs: leftOf(waitMs, startedAt), label, signal };
  if (kind === 'exclusive') return locks.lock(name).acquire(options);
  if (kind === 'shared') return locks.readWriteLock(name).read.acquire(options);
  return locks.semaphore(name, kind.permits).acquire(options);
}

async function underLease(
  lease: Lease,
  { command, name }: RunPlan,
  guardian: CommandGuardian,
  signals: ForwardedSignals,
  say: (text: string) => void,
): Promise<number> {
  try {
    // The signal came when the store had granted the lock: a command that began now would never get the signal.
    if (signals.endOfWait.aborted) return EXIT.signal + signals.number;
    const code = await runGuarded(lease, { command }, guardian, signals, say);
    // The guardian ends the command shortly before the lease ends, which is not lost yet.
    if (guardian.hasEnded && !lease.signal.aborted)
      say(`the lock "${name}" was not renewed in time: the command is ended`);
    return code;
  } finally {
    await lease.release().catch((error: unknown) => {
      if (!lease.signal.aborted) say(`the lock "${name}" ends by its ttl: ${(error as Error).message}`);
    });
  }
}
