import { readFileSync } from 'node:fs';
import { isLockError, type LockErrorCode } from '@locks/core';
import { type CommandLine, readCommandLine, textOf, USAGE } from './command-line.ts';
import { readBoardPlan } from './commands/board-plan.ts';
import { doctor } from './commands/doctor.ts';
import { ls, show, watch, type Write } from './commands/look.ts';
import { once, readOncePlan } from './commands/once.ts';
import { readProvePlan } from './commands/prove-plan.ts';
import { readResetPlan, reset } from './commands/reset.ts';
import { readReleasePlan, release } from './commands/release.ts';
import { readRunPlan, run } from './commands/run.ts';
import { why } from './commands/why.ts';
import { readDuration } from './duration.ts';
import { EXIT } from './exit-codes.ts';
import { openStore, REACH_MS, type Store } from './open-store.ts';
import { machineFolderUrl, userFolderUrl } from './own-folder.ts';
import { UsageError } from './usage-error.ts';

/** Minimum time limit for the first answer of the store, in milliseconds, whatever `--wait` says. */
const LEAST_REACH_MS = 1_000;
const DEFAULT_EVERY_MS = 1_000;

/** The environment in which a command line is carried out. */
export interface Environment {
  /** The URL of the store, unless the command line names one. */
  readonly url: string | undefined;
  /** Writes the output. */
  readonly write: Write;
  /** Writes a message for a person. */
  readonly say: (text: string) => void;
}

/** Carries a command line out. Gives the exit code. */
export async function runCli(args: readonly string[], environment: Environment): Promise<number> {
  const { write, say } = environment;
  try {
    const line = readCommandLine(args);
    if (line === 'help') write(`${USAGE}\n`);
    else if (line === 'version') write(`${version()}\n`);
    else return await work(line, environment);
    return EXIT.ok;
  } catch (error) {
    say(messageOf(error));
    return exitCodeOf(error);
  }
}

async function work(line: CommandLine, environment: Environment): Promise<number> {
  if (line.command === 'doctor') {
    refuseNames(line, 0);
    const [url, prefix] = storeOf(line, environment);
    return await doctor(url, prefix, line.values['json'] === true, environment.write);
  }
  if (line.command === 'verify') {
    const { verify } = await import('./commands/verify.ts');
    if (line.rest.length > 0) throw new UsageError(`verify runs no command: "${line.rest.join(' ')}"`);
    return verify(line.operands, line.values, environment.write);
  }
  if (line.command === 'prove') {
    refuseNames(line, 0);
    const { prove } = await import('./commands/prove.ts');
    const [url, prefix] = storeOf(line, environment);
    const { write, say } = environment;
    const isTerminal = process.stderr.isTTY === true;
    return await prove(
      readProvePlan(line.values),
      { url, prefix },
      { write, say, signal: interrupted(), isTerminal },
    );
  }
  // Errors of the command line are reported before the store is contacted.
  const { waitMs = 0, mayBeUnprepared = false, execute } = prepared(line, environment);
  await using store = await openStore(...storeOf(line, environment));
  // `--wait` includes the time to reach the store. A command that does not wait for a lock still waits for the store.
  const reachMs = waitMs === 0 ? REACH_MS : Math.min(REACH_MS, Math.max(LEAST_REACH_MS, waitMs));
  await store.reach(reachMs).catch((error: unknown) => {
    if (!mayBeUnprepared || !saysMissing(error)) throw error;
  });
  return await execute(store);
}

function storeOf({ values }: CommandLine, { url }: Environment): [url: string, prefix: string | undefined] {
  const [named, prefix] = [textOf(values, 'url'), textOf(values, 'prefix')];
  if (values['machine'] !== true) return [named ?? url ?? userFolderUrl(), prefix];
  if (named !== undefined)
    throw new UsageError('--machine and --url contradict each other: give one of them');
  return [machineFolderUrl(), prefix];
}

/** @throws UsageError for a command after `--`, and for more than `most` names */
function refuseNames({ command, operands, rest }: CommandLine, most: 0 | 1): void {
  if (rest.length > 0) throw new UsageError(`${command} runs no command: "${rest.join(' ')}"`);
  const more = operands.slice(most);
  if (more.length === 0) return;
  throw new UsageError(`${command} takes ${most === 0 ? 'no' : 'one'} name: "${more.join(' ')}" is too much`);
}

interface Prepared {
  /** The time to wait for a lock, in milliseconds. */
  readonly waitMs?: number;
  /** Whether the command makes what the store lacks for its first answer. */
  readonly mayBeUnprepared?: boolean;
  /** Runs the command on the store, and gives the exit code. */
  readonly execute: (store: Store) => Promise<number>;
}

/** Checks a command line. */
function prepared(line: CommandLine, environment: Environment): Prepared {
  const { write, say } = environment;
  const { command, values, operands, rest } = line;
  const json = values['json'] === true;
  if (command === 'run') {
    const plan = readRunPlan(operands, rest, values);
    return { waitMs: plan.waitMs, execute: ({ locks }) => run(locks, plan, say) };
  }
  if (command === 'once' && values['reset'] === true) {
    const plan = readResetPlan(operands, rest, values);
    return { waitMs: plan.waitMs, execute: (store) => reset(store, plan, write) };
  }
  if (command === 'once') {
    const plan = readOncePlan(operands, rest, values, process.stderr.isTTY === true);
    return { waitMs: plan.waitMs, execute: (store) => once(store, plan, say) };
  }
  if (command === 'prepare') {
    refuseNames(line, 0);
    return {
      mayBeUnprepared: true,
      async execute({ locks }) {
        await locks.prepare();
        write('prepared\n');
        return EXIT.ok;
      },
    };
  }
  refuseNames(line, 1);
  const [operand] = operands;
  if (command === 'ls') return done(({ locks }) => ls(locks, operand ?? '', json, write));
  if (command === 'watch') {
    const every = textOf(values, 'every');
    const everyMs = every === undefined ? DEFAULT_EVERY_MS : readDuration('--every', every);
    const isTerminal = process.stdout.isTTY === true;
    const options = { prefix: operand ?? '', json, everyMs, isTerminal, signal: interrupted() };
    return done(({ locks }) => watch(locks, options, write));
  }
  if (command === 'board') {
    const plan = readBoardPlan(operand ?? '', values);
    return done(async ({ locks }) => {
      const { board } = await import('./commands/board.ts');
      await board(locks, plan, new URL('../page/', import.meta.url), interrupted(), write);
    });
  }
  if (operand === undefined) throw new UsageError(`${command}: the name of the lock is missing`);
  if (command === 'show') return done(({ locks }) => show(locks, operand, json, write));
  if (command === 'why') return done(({ locks }) => why(locks, operand, json, write));
  const plan = readReleasePlan(operand, values, process.stdin.isTTY === true);
  return { execute: ({ locks }) => release(locks, plan, json, write) };
}

function done(work: (store: Store) => Promise<void>): Prepared {
  return {
    async execute(store) {
      await work(store);
      return EXIT.ok;
    },
  };
}

/** Aborts at Ctrl-C, and at a request to end. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => controller.abort());
  return controller.signal;
}

/** Whether DynamoDB has answered that there is no such table. */
function saysMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'ResourceNotFoundException' || saysMissing(error.cause);
}

function messageOf(error: unknown): string {
  if (error instanceof UsageError || isLockError(error)) return error.message;
  // An AggregateError has an empty message: the host was reached at none of its several addresses.
  return error instanceof AggregateError ? error.errors.map(String).join(', ') : String(error);
}

/** The lock is held, and the call did not wait, or not for any longer. */
const BUSY: ReadonlySet<LockErrorCode> = new Set(['LOCK_TIMEOUT', 'LOCK_CONTENDED', 'LOCK_QUEUE_FULL']);

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (isLockError(error) && BUSY.has(error.code)) return EXIT.contended;
  if (isLockError(error, 'LOCK_BACKEND')) return EXIT.unavailable;
  if (isLockError(error, 'LOCK_CLOCK_SKEW')) return EXIT.clock;
  return isLockError(error) ? EXIT.usage : EXIT.unavailable;
}

function version(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
