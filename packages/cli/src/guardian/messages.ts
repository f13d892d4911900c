/** What a guardian guards. */
export interface Guarded {
  /** The acquisition id, which all processes of the command have in their environment. */
  readonly id: string;
  /** How many milliseconds before the end of the lease SIGTERM is sent. */
  readonly termBeforeMs: number;
  /** How many milliseconds before the end of the lease SIGKILL is sent. */
  readonly killBeforeMs: number;
}

/**
 * What `locks run` writes to its guardian, a line of JSON each. Times are those of the machine's monotonic clock, in
 * milliseconds: `machineNow()` is the same in both processes.
 */
export type GuardianMessage =
  /** `isInner`: `locks` itself runs under a lock of an outer `locks run`. */
  | ({ readonly kind: 'guard'; readonly isInner: boolean } & Guarded)
  /** The process group of the command, which runs now. */
  | { readonly kind: 'group'; readonly group: number }
  /** Until when the store certainly keeps the lease; `null`: as long as this process lives. */
  | { readonly kind: 'until'; readonly at: number | null }
  /** The lease is lost: somebody else may hold already. */
  | { readonly kind: 'lost' }
  /** The command has ended. */
  | { readonly kind: 'done' };

/** What the guardian reports, a line each. `ending`: it is about to end the command. `done` answers the message. */
export type GuardianReport = 'ready' | 'ending' | 'done';

/** Milliseconds of a clock that all processes of a machine share, and that nobody sets. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
