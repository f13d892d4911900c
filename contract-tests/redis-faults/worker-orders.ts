import type { AcquireOptions } from '@locks/core';
import type { RedisAddress } from '../src/redis/address.ts';
import type { Library } from '../src/redis/open-client.ts';
import type { LabOptions } from './lab.ts';

export interface WorkerSetup extends LabOptions {
  readonly library: Library;
  readonly address: RedisAddress;
}

/** What a lease looks like from another process; times are of the machine's monotonic clock, in milliseconds. */
export interface LeaseView {
  readonly id: number;
  readonly acquisitionId: string;
  readonly token: string;
  readonly at: number;
}

export interface LeaseState {
  readonly validForMs: number;
  readonly aborted: boolean;
  readonly reason: string | undefined;
}

export interface LoadOptions {
  readonly resources: readonly string[];
  /** Which locks of a resource, in turn. @defaultValue exclusive ones */
  readonly kinds?: Readonly<Record<string, readonly Kind[]>>;
  /** How many loops; each takes the resources in turn. */
  readonly loops: number;
  readonly holdMs: number;
  readonly waitMs: number;
}

/** One stay in a critical section. It ended when the work ended or, if earlier, when the loss was told. */
export interface Stay {
  readonly resource: string;
  readonly kind: Kind;
  readonly who: string;
  readonly token: string;
  readonly askedAt: number;
  readonly enteredAt: number;
  readonly endedAt: number;
  readonly lost: string | undefined;
}

export interface LoadResult {
  readonly stays: readonly Stay[];
  /** Codes and messages of acquires and releases that failed. */
  readonly failures: readonly { readonly at: number; readonly what: string }[];
  readonly unhandled: readonly string[];
}

/** Which lock of a name. */
export type Kind = 'exclusive' | 'shared' | { readonly permits: number; readonly weight: number };

export interface Orders {
  acquire(name: string, options?: Omit<AcquireOptions, 'signal' | 'within'>, kind?: Kind): Promise<LeaseView>;
  /** Writes `key` under the token of a lease, as one who did not notice that time went by: looks at nothing before. */
  write(id: number, key: string, value: string, how: 'fenced' | 'plain'): Promise<unknown>;
  release(id: number): Promise<void>;
  state(id: number): Promise<LeaseState>;
  startLoad(options: LoadOptions): Promise<void>;
  stopLoad(): Promise<LoadResult>;
}

export interface Order {
  readonly order: number;
  readonly name: keyof Orders;
  readonly args: readonly unknown[];
}

export type Answer =
  | { readonly order: number; readonly value: unknown }
  | { readonly order: number; readonly error: { readonly message: string; readonly code?: string } };

/** Milliseconds on the clock that all processes of a machine share. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
