import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type GuardianMessage, type GuardianReport, machineNow } from './messages.ts';

/** The longest time before the end of a lease at which the command is asked to end. */
const MOST_TERM_MS = 5_000;
const LEAST_KILL_MS = 50;
const MOST_KILL_MS = 1_000;

/** The guardian's side of `locks run`. */
export class CommandGuardian {
  readonly #child: ChildProcess;
  #terminated = false;

  constructor(child: ChildProcess, reports: NodeJS.EventEmitter) {
    this.#child = child;
    child.stdin?.on('error', () => undefined);
    reports.on('line', (line: GuardianReport) => {
      if (line === 'terminated') this.#terminated = true;
    });
  }

  /** The guardian has asked the command to end, since the lease was lost or about to be. */
  get hasTerminated(): boolean {
    return this.#terminated;
  }

  /**
   * Guards the processes with a mark in their environment while a lease is kept that is valid for `validForMs` at first. It
   * is renewed every third of that: its last quarter begins only after renewals have failed.
   */
  guard(mark: string, validForMs: number): void {
    const termBeforeMs = Math.min(MOST_TERM_MS, validForMs / 4);
    const killBeforeMs = Math.min(MOST_KILL_MS, Math.max(LEAST_KILL_MS, validForMs / 20));
    this.#tell({ kind: 'guard', mark, termBeforeMs, killBeforeMs });
    this.keptFor(validForMs);
  }

  /** The process group of the command, where processes cannot be found by their mark. */
  group(group: number): void {
    this.#tell({ kind: 'group', group });
  }

  /** The store certainly keeps the lease for so long. */
  keptFor(validForMs: number): void {
    this.#tell({ kind: 'until', at: Number.isFinite(validForMs) ? machineNow() + validForMs : null });
  }

  lost(): void {
    this.#terminated = true;
    this.#tell({ kind: 'lost' });
  }

  /** The command has ended: the guardian ends too. */
  done(): void {
    this.#tell({ kind: 'done' });
    this.#child.stdin?.end();
  }

  #tell(message: GuardianMessage): void {
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }
}

/** Starts a guardian, and waits until it guards. */
export async function startGuardian(): Promise<CommandGuardian> {
  // A session of its own: no signal to the terminal's processes reaches it.
  const child = spawn(process.execPath, [programFile()], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  const reports = createInterface({ input: child.stdout });
  const guardian = new CommandGuardian(child, reports);
  const failed = once(child, 'exit').then(() => {
    throw new Error('the guardian process did not start');
  });
  failed.catch(() => undefined);
  await Promise.race([once(reports, 'line'), failed]);
  // Neither the process nor its pipe keeps this one alive.
  child.unref();
  for (const stream of [child.stdin, child.stdout]) (stream as unknown as { unref(): void }).unref();
  return guardian;
}

/** The program beside this module: of the package, or of its sources. */
function programFile(): string {
  const built = fileURLToPath(new URL('./guardian/main.js', import.meta.url));
  return existsSync(built) ? built : fileURLToPath(new URL('./main.ts', import.meta.url));
}
