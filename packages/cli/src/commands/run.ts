import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { AcquireOptions, Lease, LockManager } from '@locks/core';
import { type OptionValues, textOf } from '../command-line.ts';
import { readDuration } from '../duration.ts';
import { EXIT } from '../exit-codes.ts';
import { type CommandGuardian, startGuardian } from '../guardian/start-guardian.ts';
import { UsageError } from '../usage-error.ts';

const DEFAULT_TTL_MS = 30_000;

/** Signals that the command gets when `locks` gets them. */
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;
/** Of these, those that end a wait for the lock. */
const ENDING = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);

export interface RunPlan {
  readonly name: string;
  readonly command: readonly string[];
  readonly kind: 'exclusive' | 'shared' | { readonly permits: number };
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly label: string | undefined;
}

/** @throws UsageError */
export function readRunPlan(
  operands: readonly string[],
  command: readonly string[],
  values: OptionValues,
): RunPlan {
  const [name, ...more] = operands;
  if (name === undefined) throw new UsageError('run: the name of the lock is missing');
  if (more.length > 0)
    throw new UsageError(`run: "${more.join(' ')}" stands before --: the command stands behind it`);
  if (command.length === 0) throw new UsageError('run: the command is missing: locks run NAME -- COMMAND');
  const [wait, ttl, permits] = ['wait', 'ttl', 'permits'].map((option) => textOf(values, option));
  if (wait !== undefined && values['no-wait'] === true) throw new UsageError('run: --wait and --no-wait');
  if (permits !== undefined && values['shared'] === true) throw new UsageError('run: --shared and --permits');
  return {
    name,
    command,
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
    label: textOf(values, 'label'),
  };
}

/** Runs the command while the lock is held. Gives the exit code. */
export async function run(locks: LockManager, plan: RunPlan, say: (text: string) => void): Promise<number> {
  const signals = new Signals();
  try {
    // Before the lock is taken: nothing may delay the guard of a command that runs.
    const guardian = await startGuardian();
    try {
      const lease = await signals.duringWait((signal) => acquire(locks, plan, signal));
      if (lease === undefined) return EXIT.signal + signals.number;
      return await underLease(lease, plan, guardian, signals, say);
    } finally {
      guardian.done();
    }
  } finally {
    signals.close();
  }
}

function acquire(locks: LockManager, plan: RunPlan, signal: AbortSignal): Promise<Lease> {
  const { name, kind, ttlMs, waitMs, label } = plan;
  // A hand-off may be short at first: the command begins with at least half of its lease. A session has no ttl of ours.
  const minRemainingMs = locks.capabilities.tenure === 'lease' ? Math.floor(ttlMs / 2) : 0;
  const options: AcquireOptions = { ttlMs, waitMs, label, signal, minRemainingMs };
  if (kind === 'exclusive') return locks.lock(name).acquire(options);
  if (kind === 'shared') return locks.readWriteLock(name).read.acquire(options);
  return locks.semaphore(name, kind.permits).acquire(options);
}

async function underLease(
  lease: Lease,
  plan: RunPlan,
  guardian: CommandGuardian,
  signals: Signals,
  say: (text: string) => void,
): Promise<number> {
  const keep = (): void => guardian.keptFor(lease.validForMs);
  const timer = setInterval(keep, Math.max(20, plan.ttlMs / 20));
  const onLost = (): void => {
    say(`the lock "${plan.name}" was lost: the command is ended`);
    guardian.lost();
  };
  lease.signal.addEventListener('abort', onLost);
  try {
    const code = await runCommand(lease, plan, guardian, signals);
    return guardian.hasTerminated ? EXIT.lost : code;
  } finally {
    clearInterval(timer);
    lease.signal.removeEventListener('abort', onLost);
    guardian.done();
    await lease.release().catch((error: unknown) => {
      if (!lease.signal.aborted) say(`the lock "${plan.name}" ends by its ttl: ${(error as Error).message}`);
    });
  }
}

async function runCommand(
  lease: Lease,
  plan: RunPlan,
  guardian: CommandGuardian,
  signals: Signals,
): Promise<number> {
  const mark = `LOCK_ID=${lease.acquisitionId}`;
  const [program = '', ...args] = plan.command;
  // Before the command runs: if this process is killed just then, its mark is enough.
  guardian.guard(mark, lease.validForMs);
  const child = spawn(program, args, {
    stdio: 'inherit',
    // A group of its own, so that all of its processes can be reached, and no signal reaches them twice.
    detached: true,
    env: {
      ...process.env,
      LOCK_NAME: lease.name,
      LOCK_ID: lease.acquisitionId,
      LOCK_TOKEN: lease.fencingToken === undefined ? '' : String(lease.fencingToken),
      LOCK_EXPIRES: Number.isFinite(lease.validForMs)
        ? new Date(Date.now() + lease.validForMs).toISOString()
        : '',
    },
  });
  if (child.pid !== undefined) {
    guardian.group(child.pid);
    signals.forwardTo(child);
  }
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? EXIT.signal + (signal === null ? 0 : constants.signals[signal]);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    process.stderr.write(`locks: ${program}: ${message}\n`);
    return code === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable;
  }
}

/** The signals of this process: they end a wait, and then go to the command. */
class Signals {
  /** The number of the signal that ended the wait. */
  number = 0;
  readonly #waiting = new AbortController();
  #child: ChildProcess | undefined;
  readonly #listeners = new Map<NodeJS.Signals, () => void>();

  constructor() {
    for (const signal of FORWARDED) this.#on(signal, () => this.#receive(signal));
    // A stopped `locks` renews nothing: it goes on when the terminal asks it to stop.
    this.#on('SIGTSTP', () => undefined);
  }

  forwardTo(child: ChildProcess): void {
    this.#child = child;
  }

  /** Gives `undefined` where a signal ended the wait. */
  async duringWait(wait: (signal: AbortSignal) => Promise<Lease>): Promise<Lease | undefined> {
    const { signal } = this.#waiting;
    try {
      return await wait(signal);
    } catch (error) {
      if (signal.aborted && error === signal.reason) return undefined;
      throw error;
    }
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #on(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  #receive(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) {
      if (!ENDING.has(signal) || this.#waiting.signal.aborted) return;
      this.number = constants.signals[signal];
      this.#waiting.abort();
      return;
    }
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has ended.
    }
  }
}
