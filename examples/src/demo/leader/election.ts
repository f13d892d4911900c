import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { StoreAddress } from '../backends.ts';
import type { CandidateOrder, CandidateReport } from './candidate.ts';

const PROGRAM = fileURLToPath(new URL('./candidate.ts', import.meta.url));

/** A leadership of a candidate. */
export interface Term {
  readonly label: string;
  readonly pid: number;
  /** When it began, in milliseconds of the machine's monotonic clock. */
  readonly beganAt: number;
  readonly token: string | undefined;
}

/** Candidates in processes of their own. */
export class Election implements AsyncDisposable {
  readonly #candidates = new Map<string, ChildProcess>();
  readonly #terms: Term[] = [];
  #endedAt: number | undefined;
  readonly #reports = new EventEmitter();

  constructor(address: StoreAddress, labels: readonly string[], ttlMs: number) {
    for (const label of labels) {
      const order: CandidateOrder = { address, label, ttlMs };
      const child = fork(PROGRAM, [JSON.stringify(order)]);
      this.#candidates.set(label, child);
      child.on('message', (report) => this.#receive(label, child, report as CandidateReport));
      child.once('exit', (code) => {
        // One that was killed is no candidate any more.
        if (this.#candidates.get(label) === child)
          this.#reports.emit('error', new Error(`${label} ended with exit code ${code}`));
      });
    }
  }

  /** The leader after `count` changes. */
  async leader(count: number): Promise<Term> {
    for (;;) {
      const term = this.#terms[count];
      if (term !== undefined) return term;
      await once(this.#reports, 'report');
    }
  }

  /** Lets the leader resign. Gives when its leadership ended. */
  async resign({ label }: Term): Promise<number> {
    this.#endedAt = undefined;
    this.#candidates.get(label)?.send('resign');
    while (this.#endedAt === undefined) await once(this.#reports, 'report');
    return this.#endedAt;
  }

  /** Ends the process of the leader at once, as a power cut does. Gives when. */
  kill({ label }: Term): number {
    const child = this.#candidates.get(label);
    this.#candidates.delete(label);
    const killedAt = Number(process.hrtime.bigint()) / 1e6;
    child?.kill('SIGKILL');
    return killedAt;
  }

  /** The candidates leave, and their processes end. */
  async [Symbol.asyncDispose](): Promise<void> {
    const left = [...this.#candidates.values()].filter((child) => child.exitCode === null);
    this.#candidates.clear();
    const gone = left.map((child) => once(child, 'exit'));
    for (const child of left) if (child.connected) child.send('stop');
    await Promise.all(gone);
  }

  #receive(label: string, child: ChildProcess, report: CandidateReport): void {
    if (report.kind === 'ended') this.#endedAt = report.at;
    else this.#terms.push({ label, pid: child.pid ?? 0, beganAt: report.at, token: report.token });
    this.#reports.emit('report');
  }
}
