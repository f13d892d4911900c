import type { FencedLease, LockManager } from '@locks/core';
import { isLockError } from '@locks/core';
import { day, every, once as runOnce, type OnceResult, type OnceRun, type Slot } from '@locks/once';
import { type OptionValues, textOf } from '../command-line.ts';
import { readDuration } from '../duration.ts';
import { EXIT } from '../exit-codes.ts';
import { startGuardian } from '../guardian/start-guardian.ts';
import type { Store } from '../open-store.ts';
import { repeatSlots } from '../slots/repeat-slots.ts';
import { UsageError } from '../usage-error.ts';
import { ForwardedSignals } from './forwarded-signals.ts';
import { type CommandLease, runGuarded } from './guarded-command.ts';
import { leftOf, type NameAndCommand, readNameAndCommand } from './name-and-command.ts';
import { timeOf } from './time-of.ts';

const HOUR_MS = 3_600_000;

export interface OncePlan extends NameAndCommand {
  readonly slot: Slot;
  readonly atMostMs: number;
  readonly keepAlive: boolean;
  readonly maxRunMs: number | undefined;
  readonly atLeastMs: number;
  readonly waitMs: number;
  /** The start of the wait, before the store was opened: a time of `performance.now()`. */
  readonly startedAt: number;
  readonly retry: 'next-machine' | 'next-slot';
  readonly label: string | undefined;
  /** The exit code where this machine has nothing to do. */
  readonly skipCode: number;
  /** Whether to report that this machine has nothing to do. */
  readonly verbose: boolean;
}

/** @throws UsageError, and LockError `LOCK_INVALID_ARGUMENT` for what the slot refuses */
export function readOncePlan(
  operands: readonly string[],
  command: readonly string[],
  values: OptionValues,
  isTerminal: boolean,
): OncePlan {
  const nameAndCommand = readNameAndCommand('once', operands, command);
  const [atMost, retry = 'next-machine', skipCode = '0'] = ['at-most', 'retry', 'skip-code'].map((option) =>
    textOf(values, option),
  );
  if (atMost === undefined) throw new UsageError('once: --at-most is missing, for example --at-most 10m');
  if (retry !== 'next-machine' && retry !== 'next-slot') {
    throw new UsageError(`--retry takes next-machine or next-slot, not "${retry}"`);
  }
  if (!/^\d{1,3}$/.test(skipCode) || Number(skipCode) > 255) {
    throw new UsageError(`--skip-code takes a number from 0 to 255, not "${skipCode}"`);
  }
  const atMostMs = readDuration('--at-most', atMost);
  const atLeastMs = durationOf(values, 'at-least');
  if (atLeastMs > atMostMs)
    throw new UsageError('once: --at-least is longer than --at-most: the lock ends at --at-most');
  const keepAlive = values['keep-alive'] === true;
  const maxRun = textOf(values, 'max-run');
  if (maxRun !== undefined && !keepAlive)
    throw new UsageError('once: --max-run needs --keep-alive: without it --at-most is the longest run');
  return {
    ...nameAndCommand,
    slot: readSlot(values),
    atMostMs,
    keepAlive,
    maxRunMs: maxRun === undefined ? undefined : readDuration('--max-run', maxRun),
    atLeastMs,
    waitMs: durationOf(values, 'wait'),
    startedAt: performance.now(),
    retry,
    label: textOf(values, 'label'),
    skipCode: Number(skipCode),
    verbose: values['verbose'] === true || isTerminal,
  };
}

function readSlot(values: OptionValues): Slot {
  const [slot, timeZone, startsAt, offset] = ['slot', 'time-zone', 'starts-at', 'offset'].map((option) =>
    textOf(values, option),
  );
  if (slot === undefined) throw new UsageError('once: --slot is missing: day, hour, or a duration like 5m');
  if (slot === 'day') {
    if (offset !== undefined)
      throw new UsageError('--offset is for other slots than a day: give --starts-at HH:MM');
    return day({ timeZone, startsAt });
  }
  if (timeZone !== undefined || startsAt !== undefined) {
    throw new UsageError('--time-zone and --starts-at go with --slot day; other slots have --offset');
  }
  const ms = slot === 'hour' ? HOUR_MS : readDuration('--slot (beside day and hour)', slot);
  return every(ms, { offsetMs: offset === undefined ? 0 : readDuration('--offset', offset) });
}

function durationOf(values: OptionValues, option: string): number {
  const text = textOf(values, option);
  return text === undefined ? 0 : readDuration(`--${option}`, text);
}

/** The work's error for a command that failed: its slot is not recorded as done. */
class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`the command ended with exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Runs the command unless its slot was done. Gives the exit code. */
export async function once(store: Store, plan: OncePlan, say: (text: string) => void): Promise<number> {
  const { name, slot, atMostMs, keepAlive, maxRunMs, atLeastMs, retry, label } = plan;
  const { capabilities } = store.locks;
  if (atLeastMs > 0 && capabilities.tenure === 'session') {
    throw new UsageError('--at-least: a lock of this store ends with the session of the process');
  }
  const signals = new ForwardedSignals();
  let hasRun = false;
  try {
    const slots = repeatSlots(await store.openSlots());
    // `once` itself refuses a store without tokens.
    const locks = store.locks as LockManager as LockManager<FencedLease>;
    const waitMs = leftOf(plan.waitMs, plan.startedAt);
    const times = { atMostMs, keepAlive, maxRunMs, atLeastMs, waitMs };
    const options = { slot, ...times, retry, label, slots, signal: signals.endOfWait };
    const result = await signals.duringWait(() =>
      runOnce(
        locks,
        name,
        async (run) => {
          await runForSlot(run, plan, signals, say);
          hasRun = true;
        },
        options,
      ),
    );
    if (result === undefined) return EXIT.signal + signals.number;
    // The process exits without closing the store, which would release the lock.
    if (result.status === 'ran' && atLeastMs > 0) process.exit(EXIT.ok);
    return exitCodeOf(result, plan, say);
  } catch (error) {
    if (error instanceof CommandFailed) return error.exitCode;
    if (hasRun) say('the command has run, and that could not be recorded: the slot may run again');
    if (!isLockError(error, 'LOCK_LOST')) throw error;
    say(error.message);
    return EXIT.lost;
  } finally {
    signals.close();
  }
}

/** @throws CommandFailed unless the command ended with 0 while the lock was held */
async function runForSlot(
  run: OnceRun,
  { name, command, atMostMs, keepAlive, maxRunMs = Number.POSITIVE_INFINITY }: OncePlan,
  signals: ForwardedSignals,
  say: (text: string) => void,
): Promise<void> {
  const endsAt = performance.now() + (keepAlive ? maxRunMs : atMostMs);
  const guardian = await startGuardian();
  try {
    run.signal.throwIfAborted();
    run.assertValid();
    const lease: CommandLease = {
      ...{ name, acquisitionId: run.acquisitionId, fencingToken: run.fencingToken, signal: run.signal },
      // A session may keep the lock for longer than a run may take.
      get validForMs() {
        return Math.max(0, Math.min(run.validForMs, endsAt - performance.now()));
      },
    };
    const guarded = { command, env: { LOCK_SLOT: run.slot } };
    const code = await runGuarded(lease, guarded, guardian, signals, () => undefined);
    if (guardian.hasEnded)
      say(`the command was ended: ${keepAlive ? '--max-run' : '--at-most'} is over, or the lock was lost`);
    if (code !== 0) throw new CommandFailed(code);
  } finally {
    await guardian.done();
  }
}

function exitCodeOf(
  result: OnceResult<void>,
  { name, skipCode, verbose }: OncePlan,
  say: (text: string) => void,
): number {
  const what = `${name}, slot ${result.slot}`;
  if (result.status === 'slot-over' && result.isSlotAhead) {
    const { slot, label } = result.recorded;
    say(
      `${what}: not run, since the slot store has slot ${slot}, which lies in the future: the clock of ${label} was ahead. ` +
        `locks once ${name} --reset lets the command run again`,
    );
    return EXIT.clock;
  }
  switch (result.status) {
    case 'ran':
      if (verbose) say(`${what}: done`);
      return EXIT.ok;
    case 'done-before':
    case 'slot-over': {
      const { slot, label, at } = result.recorded;
      if (verbose) say(`${what}: slot ${slot} was done by ${label} at ${timeOf(at)}; nothing to do`);
      return skipCode;
    }
    case 'running-elsewhere':
      if (verbose) say(`${what}: another machine runs it`);
      return skipCode;
    case 'failed-before':
      say(
        `${what}: the run that ${result.recorded.label} began failed or died, and --retry next-slot forbids another`,
      );
      return EXIT.failedBefore;
    case 'overtaken':
      say(`${what}: the lock was lost while the command ran, and another machine has run it since`);
      return EXIT.lost;
  }
}
