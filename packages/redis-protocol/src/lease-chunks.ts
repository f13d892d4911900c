import type { AcquireRequest } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import { shareWeight } from './mode.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';

const LEASES_PER_COMMAND = 200;

/** A lease to renew or to claim. */
export interface RenewableLease {
  readonly keys: ResourceKeys;
  readonly request: AcquireRequest;
  readonly ttlMs: number;
  readonly mayBeShared?: boolean;
}

/** Leases of one command, by their index: all exclusive, or all of them perhaps shares; in a cluster all of one slot. */
export interface LeaseChunk {
  readonly areShares: boolean;
  readonly indexes: number[];
}

export function chunksOf({ cluster }: RedisPort, leases: readonly RenewableLease[]): LeaseChunk[] {
  const open = new Map<number, LeaseChunk>();
  const chunks: LeaseChunk[] = [];
  for (const [index, lease] of leases.entries()) {
    const areShares = shareWeight(lease) !== undefined;
    const slot = cluster ? lease.keys.slot : 0;
    const group = areShares ? -1 - slot : slot;
    let chunk = open.get(group);
    if (chunk === undefined || chunk.indexes.length >= LEASES_PER_COMMAND) {
      chunk = { areShares, indexes: [] };
      open.set(group, chunk);
      chunks.push(chunk);
    }
    chunk.indexes.push(index);
  }
  return chunks;
}

/** Renews or claims. Resolves to one reply for each lease of the chunk. */
export async function runOnChunk(
  port: RedisPort,
  leases: readonly RenewableLease[],
  { areShares, indexes }: LeaseChunk,
  ...claims: readonly 'claim'[]
): Promise<readonly unknown[]> {
  const keys: string[] = [];
  const args: string[] = [];
  for (const index of indexes) {
    const lease = leases[index] as RenewableLease;
    keys.push(lease.keys.lock);
    if (areShares) keys.push(holdersKey(lease.keys));
    args.push(lease.request.acquisitionId, String(lease.ttlMs));
  }
  args.push(...claims);
  return (await runScript(port, areShares ? scripts.renewShares : scripts.renew, keys, args)) as unknown[];
}
