import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { EXIT } from '../exit-codes.ts';
import { shown } from '../foreign-text.ts';
import { ID_VARIABLE, IDS_VARIABLE } from '../guardian/processes.ts';
import type { CommandGuardian } from '../guardian/start-guardian.ts';
import type { ForwardedSignals } from './forwarded-signals.ts';

/** The pause between two messages to the guardian about the validity of the lease, in milliseconds. */
const LEAST_TELL_MS = 20;
const MOST_TELL_MS = 500;

/** The properties of a lease that the command under it needs. */
export interface CommandLease {
  readonly name: string;
  readonly acquisitionId: string;
  readonly fencingToken?: bigint | undefined;
  /** Milliseconds for which the lease is certain without another renewal. */
  readonly validForMs: number;
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
}

export interface GuardedCommand {
  readonly command: readonly string[];
  /** The environment variables of the command beside those of the lease. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs a command under a lease, with a guardian that ends it when the lease is lost. Gives the exit code. The guardian has ended
 * afterwards.
 */
export async function runGuarded(
  lease: CommandLease,
  command: GuardedCommand,
  guardian: CommandGuardian,
  signals: ForwardedSignals,
  say: (text: string) => void,
): Promise<number> {
  // A session is valid for seconds, whatever ttl was asked for.
  const timer = setInterval(
    () => guardian.tell(),
    Math.min(MOST_TELL_MS, Math.max(LEAST_TELL_MS, lease.validForMs / 20)),
  );
  const onLost = (): void => {
    say(`the lock "${lease.name}" was lost: the command is ended`);
    guardian.lost();
  };
  lease.signal.addEventListener('abort', onLost);
  try {
    const code = await runCommand(lease, command, guardian, signals);
    // The command may have ended before the report arrived that it was asked to end.
    await guardian.done();
    return guardian.hasEnded ? EXIT.lost : code;
  } finally {
    clearInterval(timer);
    lease.signal.removeEventListener('abort', onLost);
  }
}

async function runCommand(
  lease: CommandLease,
  { command, env }: GuardedCommand,
  guardian: CommandGuardian,
  signals: ForwardedSignals,
): Promise<number> {
  const [program = '', ...args] = command;
  // The guard begins before the command runs: if this process is killed just then, the id in the command's environment is
  // enough.
  guardian.guard(lease.acquisitionId, () => lease.validForMs);
  try {
    const child = spawn(program, args, {
      stdio: 'inherit',
      // The command has a process group of its own, so that all of its processes can be reached, and no signal reaches them
      // twice.
      detached: true,
      env: { ...process.env, ...env, ...environmentOf(lease) },
    });
    if (child.pid !== undefined) {
      guardian.group(child.pid);
      signals.forwardTo(child);
    }
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? EXIT.signal + (signal === null ? 0 : constants.signals[signal]);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    process.stderr.write(`locks: ${shown(`${program}: ${REASONS[code ?? ''] ?? message}`)}\n`);
    return code === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable;
  }
}

/** Why a command cannot be started, in the words of shells. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such command, or the folder that it runs in is gone',
  EACCES: 'it may not be executed',
};

function environmentOf({ name, acquisitionId, fencingToken, validForMs }: CommandLease): NodeJS.ProcessEnv {
  return {
    LOCK_NAME: name,
    [ID_VARIABLE]: acquisitionId,
    [IDS_VARIABLE]: [process.env[IDS_VARIABLE], acquisitionId].filter(Boolean).join(' '),
    LOCK_TOKEN: fencingToken === undefined ? '' : String(fencingToken),
    LOCK_EXPIRES: Number.isFinite(validForMs) ? new Date(Date.now() + validForMs).toISOString() : '',
  };
}
