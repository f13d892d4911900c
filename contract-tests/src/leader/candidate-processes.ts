import type { CandidateSetup, LedTerm } from './commands.ts';
import { waitUntil } from '@locks/test-servers';
import { type CandidateProcess, startCandidate } from './start-candidate.ts';

export const TTL_MS = 2_000;
/** What stores and processes may take longer on a busy machine. */
export const SLACK_MS = 6_000;

/** How all processes of an election reach their store. */
export type ElectionStore = Pick<CandidateSetup, 'harness' | 'env'>;

/** The processes of one election. */
export class CandidateProcesses implements AsyncDisposable {
  readonly name: string;
  readonly #store: ElectionStore;
  readonly #ttlMs: number;
  readonly #processes: CandidateProcess[] = [];

  constructor(name: string, store: ElectionStore, ttlMs = TTL_MS) {
    this.name = name;
    this.#store = store;
    this.#ttlMs = ttlMs;
  }

  /** A process that takes part, once the store has it as the leader or in the queue. */
  async join(label: string): Promise<CandidateProcess> {
    const started = await this.observe(label);
    await started.call.campaign(this.name);
    return started;
  }

  async observe(label: string): Promise<CandidateProcess> {
    const started = await startCandidate({ ...this.#store, label, ttlMs: this.#ttlMs });
    this.#processes.push(started);
    return started;
  }

  /** Resolves with the last leadership of a process when it leads, for the `epoch`th time. */
  async leads({ call }: CandidateProcess, epoch = 1): Promise<LedTerm> {
    return waitUntil(
      async () => (await call.terms()).find((term) => term.epoch === epoch && term.endedAt === undefined),
      { what: `leadership ${epoch}`, timeoutMs: 40_000, everyMs: 20 },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((one) => one.kill()));
  }
}

export async function firstTerm({ call }: CandidateProcess): Promise<LedTerm> {
  return (await call.terms())[0] as LedTerm;
}
