/** The lock whose command a guardian guards, and the times of the signals. */
export interface Guarded {
  /** The acquisition id, which all processes of the command have in their environment. */
  readonly id: string;
  /** The time of SIGTERM, in milliseconds before the end of the lease. */
  readonly termBeforeMs: number;
  /** The time of SIGKILL, in milliseconds before the end of the lease. */
  readonly killBeforeMs: number;
}

/**
 * A message of `locks run` to its guardian, one line of JSON. Times are those of the machine's monotonic clock, in
 * milliseconds: `machineNow()` is the same in both processes.
 */
export type GuardianMessage =
  /** `isInner`: `locks` itself runs under a lock of an outer `locks run`. */
  | ({ readonly kind: 'guard'; readonly isInner: boolean } & Guarded)
  /** The process group of the command, which runs now. */
  | { readonly kind: 'group'; readonly group: number }
  /** The time until which the store certainly keeps the lease; `null`: as long as this process lives. */
  | { readonly kind: 'until'; readonly at: number | null }
  /** The lease is lost: somebody else may hold already. */
  | { readonly kind: 'lost' }
  /** The command has ended. */
  | { readonly kind: 'done' };

/**
 * A report of the guardian, one line. `ending`: the guardian is about to end the command. `done`: the answer to the message
 * `done`.
 */
export type GuardianReport = 'ready' | 'ending' | 'done';

/** Milliseconds of a clock that all processes of a machine share, and that nobody sets. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
