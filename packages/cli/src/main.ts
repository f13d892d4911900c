#!/usr/bin/env node
/** The command `locks`: docs/command-line.md. */
import { readFileSync } from 'node:fs';
import { isLockError } from '@locks/core';
import { type CommandLine, readCommandLine, textOf, USAGE } from './command-line.ts';
import { bench, readBenchSeconds } from './commands/bench.ts';
import { readBoardPlan } from './commands/board-plan.ts';
import { doctor } from './commands/doctor.ts';
import { ls, show, watch } from './commands/look.ts';
import { once, readOncePlan } from './commands/once.ts';
import { readReleasePlan, release } from './commands/release.ts';
import { readRunPlan, run } from './commands/run.ts';
import { readDuration } from './duration.ts';
import { EXIT } from './exit-codes.ts';
import { openStore, type Store } from './open-store.ts';
import { UsageError } from './usage-error.ts';

/** How long the store has for its first answer. */
const REACH_MS = 5_000;
const DEFAULT_EVERY_MS = 1_000;

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read the output has seen enough, as with `| head`.
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  say(`the output cannot be written: ${error.message}`);
  process.exit(EXIT.io);
});

// A message that cannot be written must not end the process, which may hold a lock: the exit code says it too.
process.stderr.on('error', () => undefined);

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  try {
    const line = readCommandLine(args);
    if (line === 'help') process.stdout.write(`${USAGE}\n`);
    else if (line === 'version') process.stdout.write(`${version()}\n`);
    else return await carryOut(line);
    return EXIT.ok;
  } catch (error) {
    say(messageOf(error));
    return exitCodeOf(error);
  }
}

async function carryOut(line: CommandLine): Promise<number> {
  if (line.command === 'doctor') {
    refuseNames(line, 0);
    const [url, prefix] = storeOf(line);
    return await doctor(url, prefix, line.values['json'] === true, write, reach);
  }
  // What is wrong is said before a store is asked.
  const work = prepared(line);
  await using store = await openStore(...storeOf(line));
  await reach(store);
  return await work(store);
}

function storeOf({ values }: CommandLine): [url: string | undefined, prefix: string | undefined] {
  return [textOf(values, 'url') ?? process.env['LOCKS_URL'], textOf(values, 'prefix')];
}

/** Waits for the first answer of a store. */
async function reach(store: Store): Promise<void> {
  try {
    await store.locks.ping({ waitMs: REACH_MS });
  } catch (error) {
    const cause = store.connectionError()?.message;
    if (cause !== undefined) say(cause);
    throw error;
  }
}

/** @throws UsageError for a command that is to be run, and for more than so many names */
function refuseNames({ command, operands, rest }: CommandLine, most: 0 | 1): void {
  if (rest.length > 0) throw new UsageError(`${command} runs no command: "${rest.join(' ')}"`);
  const more = operands.slice(most);
  if (more.length === 0) return;
  throw new UsageError(`${command} takes ${most === 0 ? 'no' : 'one'} name: "${more.join(' ')}" is too much`);
}

/** Checks a command line. Gives the work, which gives the exit code. */
function prepared(line: CommandLine): (store: Store) => Promise<number> {
  const { command, values, operands, rest } = line;
  const json = values['json'] === true;
  if (command === 'run') {
    const plan = readRunPlan(operands, rest, values);
    return ({ locks }) => run(locks, plan, say);
  }
  if (command === 'bench') {
    refuseNames(line, 0);
    const seconds = readBenchSeconds(values);
    return async ({ locks }) => {
      await using other = await openStore(...storeOf(line));
      return await bench({ one: locks, other: other.locks }, seconds, json, write);
    };
  }
  if (command === 'once') {
    const plan = readOncePlan(operands, rest, values, process.stderr.isTTY === true);
    return (store) => once(store, plan, say);
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
  const plan = readReleasePlan(operand, values, process.stdin.isTTY === true);
  return ({ locks }) => release(locks, plan, json, write);
}

function done(work: (store: Store) => Promise<void>): (store: Store) => Promise<number> {
  return async (store) => {
    await work(store);
    return EXIT.ok;
  };
}

/** Aborts at Ctrl-C, and at a request to end. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => controller.abort());
  return controller.signal;
}

function messageOf(error: unknown): string {
  if (error instanceof UsageError || isLockError(error)) return error.message;
  // A host with several addresses was reached at none of them; the message is empty.
  return error instanceof AggregateError ? error.errors.map(String).join(', ') : String(error);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (isLockError(error, 'LOCK_TIMEOUT')) return EXIT.contended;
  if (isLockError(error, 'LOCK_BACKEND')) return EXIT.unavailable;
  return isLockError(error) ? EXIT.usage : EXIT.unavailable;
}

function write(text: string): void {
  process.stdout.write(text);
}

function say(text: string): void {
  process.stderr.write(`locks: ${text}\n`);
}

function version(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
