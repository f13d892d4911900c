import type { Workload } from '../workloads.ts';

/** What a worker of the lab is told at its start, as JSON. */
export interface LabWorkerSetup {
  /** Its name in histories. */
  readonly name: string;
  /** Whose default export is a `FaultLab`; it opens the client. */
  readonly module: string;
  readonly address: unknown;
  readonly options: object;
  readonly workloads: readonly Workload[];
  /** The port of the kept set, or the path of its socket. */
  readonly setAt: number | string;
  /** Where the histories go, one file a workload. */
  readonly folder: string;
  /** Where the trace of the worker goes. Absent: nowhere. */
  readonly traces?: string | undefined;
  /** For how long sections last at most. */
  readonly holdMs: number;
  /** For how long a renewal thread renews the leases of a blocked worker. Absent: there is no thread. */
  readonly maxBlockedMs?: number | undefined;
}

export interface LabWorkerCommands {
  start(): Promise<void>;
  /** Blocks the event loop. */
  block(ms: number): Promise<void>;
  /** Resolves when every loop has ended; no section is left open. */
  stop(): Promise<void>;
  /** For each workload, how many of its resources cannot be acquired within some time. For a worker that has not started. */
  ghosts(withinMs: number): Promise<Partial<Record<Workload, number>>>;
}

/** Where a worker writes the history of a workload. */
export function historyFile(folder: string, workload: Workload, worker: string): string {
  return `${folder}/${workload} ${worker}.jsonl`;
}
