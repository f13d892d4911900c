import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CommandEnd } from './command-end.ts';
import { type GuardianMessage, type GuardianReport, machineNow } from './messages.ts';
import { ID_VARIABLE, IDS_VARIABLE } from './processes.ts';

/** The longest time before the end of a lease at which the command is asked to end. */
const MOST_TERM_MS = 5_000;
const LEAST_KILL_MS = 50;
const MOST_KILL_MS = 1_000;
/** `locks` itself sends SIGTERM this share of the guardian's time before the end of the lease, where the guardian has not. */
const OWN_SHARE = 0.8;
/** Time limit for an answer of the guardian, in milliseconds. */
const ANSWER_MS = 1_000;

/** The guardian's side of `locks run`. */
export class CommandGuardian {
  readonly #child: ChildProcess;
  /** Resolves when the guardian has reported all that it will. */
  readonly #answered: Promise<void>;
  #leftMs: () => number = () => Number.POSITIVE_INFINITY;
  #done: Promise<void> | undefined;
  /** Ends the command in place of a guardian that was killed or stopped. */
  readonly #end = new CommandEnd({ leftMs: () => this.#leftMs(), onEnd: () => undefined });

  constructor(child: ChildProcess, reports: NodeJS.EventEmitter) {
    this.#child = child;
    child.stdin?.on('error', () => undefined);
    this.#answered = new Promise((resolve) => {
      reports.on('line', (line: GuardianReport) => {
        if (line === 'ending') this.#end.wasAsked();
        if (line === 'done') resolve();
      });
      reports.on('close', resolve);
    });
  }

  /** `true`: the command was asked to end, since the lease was lost or about to be. Certain once `done()` has resolved. */
  get hasEnded(): boolean {
    return this.#end.hasBegun;
  }

  /**
   * Guards the processes with an acquisition id in their environment while its lease is kept. The lease is renewed every third
   * of its time: the last quarter begins only after renewals have failed.
   *
   * @param leftMs - milliseconds for which the lease is certain
   */
  guard(id: string, leftMs: () => number): void {
    const validForMs = leftMs();
    const termBeforeMs = Math.min(MOST_TERM_MS, validForMs / 4);
    const killBeforeMs = Math.min(MOST_KILL_MS, Math.max(LEAST_KILL_MS, validForMs / 20));
    this.#leftMs = leftMs;
    this.#tell({ kind: 'guard', id, termBeforeMs, killBeforeMs, isInner: Boolean(process.env[ID_VARIABLE]) });
    this.#end.guard({ id, termBeforeMs: termBeforeMs * OWN_SHARE, killBeforeMs });
    this.tell();
  }

  /** Sets the process group of the command, needed where processes cannot be found by their environment. */
  group(group: number): void {
    this.#end.group = group;
    this.#tell({ kind: 'group', group });
  }

  /** Tells the guardian for how long the lease is certain. To be called often. */
  tell(): void {
    const leftMs = this.#leftMs();
    this.#tell({ kind: 'until', at: Number.isFinite(leftMs) ? machineNow() + leftMs : null });
    this.#end.plan();
  }

  lost(): void {
    this.#tell({ kind: 'lost' });
    this.#end.ask();
    this.#end.kill();
  }

  /**
   * Notes that the command has ended, or never began. Resolves when none of its processes is left, if the command was asked to
   * end.
   */
  done(): Promise<void> {
    return (this.#done ??= this.#finish());
  }

  async #finish(): Promise<void> {
    this.#tell({ kind: 'done' });
    // A guardian that stands still reports nothing more. Once it was killed, all that it wrote is read.
    const timer = setInterval(() => this.#child.kill('SIGKILL'), ANSWER_MS);
    await this.#answered;
    clearInterval(timer);
    if (this.hasEnded) await this.#end.finish();
    this.#end.stop();
    this.#child.stdin?.end();
  }

  #tell(message: GuardianMessage): void {
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }
}

/** Starts a guardian, and waits until it guards. */
export async function startGuardian(): Promise<CommandGuardian> {
  const child = spawn(process.execPath, [programFile()], {
    stdio: ['pipe', 'pipe', 'ignore'],
    // The guardian has a session of its own: no signal to the terminal's processes reaches it.
    detached: true,
    // The guardian does not inherit the ids of outer locks: it must survive the kill of an outer guardian, and end its own
    // command.
    env: { ...process.env, [ID_VARIABLE]: undefined, [IDS_VARIABLE]: undefined },
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
