import type { MessagePort } from 'node:worker_threads';
import type { Grant, LossReason } from '../backend/types.ts';

/** What the thread is started with. */
export interface ThreadData {
  /** The URL of the module whose default export makes the backend. */
  readonly module: string;
  readonly maxBlockedMs: number;
  readonly cells: BigInt64Array<SharedArrayBuffer>;
  /** For the stacks of what blocks the event loop; `undefined` where none are taken. */
  readonly stacks: Pick<MessagePort, 'postMessage'> | undefined;
}

/** The stack of what blocks the event loop, which was silent since its heartbeat `beat`. */
export interface StackMessage {
  readonly beat: bigint;
  readonly stack: string;
}

/** A message to the thread. `at` is the monotonic clock of the sender, in nanoseconds. */
export type ToThread = { readonly at: bigint } & (
  | { readonly op: 'clock' }
  | {
      readonly op: 'keep';
      readonly id: number;
      readonly grant: Grant;
      readonly ttlMs: number;
      readonly renewForMs: number;
      readonly cells: BigInt64Array<SharedArrayBuffer>;
    }
  /** `isAwaited`: the event loop is told when no renewal is under way any more. */
  | { readonly op: 'end'; readonly id: number; readonly isAwaited: boolean }
  | { readonly op: 'release'; readonly id: number }
);

/** A message from the thread. */
export type FromThread =
  | { readonly op: 'clock' }
  | { readonly op: 'ready'; readonly backend: string }
  /** The module gives no backend. `error`: what it threw. */
  | { readonly op: 'failed'; readonly why: string; readonly error?: unknown }
  | { readonly op: 'settled'; readonly id: number }
  | { readonly op: 'lost'; readonly id: number; readonly reason: LossReason }
  | { readonly op: 'dropped'; readonly id: number };
