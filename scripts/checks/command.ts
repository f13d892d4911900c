import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { root } from '../launcher/root.mjs';
import { childEnded } from './processor-time.ts';

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** @defaultValue ten minutes */
  readonly limitMs?: number;
}

export interface CommandResult {
  readonly ok: boolean;
  /** Both streams, in the order in which their output arrived. */
  readonly output: string;
  /** The standard output alone. */
  readonly stdout: string;
}

/** Whether a command that begins now gives way to others. */
const background = new AsyncLocalStorage<() => boolean>();
/** A command that gets only the processor time that others leave takes so many times as long. */
const BACKGROUND_TIMES = 4;
/** With the lowest priority a session would stand still beside any other work of the machine. */
const SESSION_NICE = 7;

/** Commands that `work` runs get only processor time that no other process uses, as long as `othersRun`. */
export function inBackground<T>(work: () => Promise<T>, othersRun: () => boolean): Promise<T> {
  return background.run(othersRun, work);
}

/** Runs a command to its end and keeps its output. Never rejects: a command that cannot be run counts as failed. */
export function runCommand(
  command: string,
  args: readonly string[],
  { cwd = root, env = process.env, limitMs = 600_000 }: CommandOptions = {},
): Promise<CommandResult> {
  const isInBackground = background.getStore()?.() ?? false;
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      // In a session of its own, which as a whole gives way to others.
      detached: isInBackground,
    });
    if (isInBackground) yieldToOthers(child.pid);
    const both: Buffer[] = [];
    const stdout: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => {
      both.push(chunk);
      stdout.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => both.push(chunk));

    const waitMs = isInBackground ? BACKGROUND_TIMES * limitMs : limitMs;
    const giveUp = setTimeout(() => {
      both.push(Buffer.from(`\ngiven up after ${waitMs / 1_000} s: ${[command, ...args].join(' ')}\n`));
      child.kill('SIGKILL');
    }, waitMs);
    const finish = (ok: boolean) => {
      clearTimeout(giveUp);
      resolve({ ok, output: Buffer.concat(both).toString(), stdout: Buffer.concat(stdout).toString() });
    };
    child.once('exit', childEnded);
    child.once('error', (error) => {
      both.push(Buffer.from(error.message));
      finish(false);
    });
    child.once('close', (code) => finish(code === 0));
  });
}

/** `undefined` when the command succeeded, else its output. */
export async function problemOf(
  command: string,
  args: readonly string[],
  options?: CommandOptions,
): Promise<string | undefined> {
  const { ok, output } = await runCommand(command, args, options);
  if (ok) return undefined;
  return output.trim() === '' ? `${[command, ...args].join(' ')} failed without output` : output.trim();
}

/** The standard output of a command that must succeed. */
export async function must(
  command: string,
  args: readonly string[],
  options?: CommandOptions,
): Promise<string> {
  const { ok, output, stdout } = await runCommand(command, args, options);
  if (!ok) throw new Error(`${[command, ...args].join(' ')}:\n${output}`);
  return stdout;
}

function yieldToOthers(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
    // Such priorities count within a session, and the servers of tests have sessions of their own. The session of this command
    // gives way to those: it gets a sixth of a processor that one of them wants too.
    writeFileSync(`/proc/${pid}/autogroup`, `${SESSION_NICE}`);
  } catch {
    // The process has ended already, or the system does not share by sessions.
  }
}
