import { type Call, type Grant, type RenewalStatus, withTimeLimit } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import { shareWeight } from './mode.ts';
import type { RedisPort } from './port.ts';
import { decodeRenewalStatus } from './renewal-status.ts';
import { listIn, wholeIn } from './reply-shape.ts';
import { isSplitSlot } from './retryable.ts';
import { mayAlwaysRepeat, runScript } from './run-script.ts';
import { beginningOf } from './value.ts';

// The commands in flight: enough to keep the server busy, few enough that writing and reading them never blocks the event loop
// for long.
const COMMANDS_AT_ONCE = 4;
const CLUSTER_COMMANDS_AT_ONCE = 32;
const LEASES_PER_COMMAND = 200;

/** A lease to renew. */
interface RenewableLease {
  readonly keys: ResourceKeys;
  readonly grant: Grant;
  readonly ttlMs: number;
  readonly mayBeShared: boolean;
}

/** Leases of one command, by their index: all exclusive, or all of them perhaps shares; in a cluster all of one slot. */
interface LeaseChunk {
  readonly areShares: boolean;
  readonly indexes: number[];
}

/** Renews many leases, in as few commands as possible. Never rejects. */
export async function renewAll(
  port: RedisPort,
  leases: readonly RenewableLease[],
  call: Call,
): Promise<RenewalStatus[]> {
  const renewalStatuses: RenewalStatus[] = new Array(leases.length);
  const chunks = chunksOf(port, leases);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let chunk = chunks[next++]; chunk !== undefined; chunk = chunks[next++]) {
      await renewChunk(port, leases, chunk, renewalStatuses);
    }
  };
  const workers = Array.from({ length: port.cluster ? CLUSTER_COMMANDS_AT_ONCE : COMMANDS_AT_ONCE }, work);
  await withTimeLimit(Promise.all(workers), call.deadline - call.now(), () => undefined);
  for (let index = 0; index < renewalStatuses.length; index++) {
    renewalStatuses[index] ??= {
      status: 'unknown',
      error: new Error('no answer from Redis before the deadline of the renewal'),
    };
  }
  // The result is a copy: an answer that comes after the deadline must not change it.
  return renewalStatuses.slice();
}

async function renewChunk(
  port: RedisPort,
  leases: readonly RenewableLease[],
  chunk: LeaseChunk,
  renewalStatuses: RenewalStatus[],
): Promise<void> {
  const { areShares, indexes } = chunk;
  try {
    const replies = await runOnChunk(port, leases, chunk);
    for (const [at, index] of indexes.entries()) renewalStatuses[index] = decodeRenewalStatus(replies[at]);
  } catch (error) {
    const index = indexes[0] as number;
    if (!isSplitSlot(error)) {
      for (const index of indexes) renewalStatuses[index] = { status: 'unknown', error };
    } else if (indexes.length > 1) {
      // The slot is being migrated: one command for each lease works if all keys of a lease are on one node.
      const parts = indexes.map((index) => ({ areShares, indexes: [index] }));
      await Promise.all(parts.map((part) => renewChunk(port, leases, part, renewalStatuses)));
    } else {
      const lease = leases[index] as RenewableLease;
      renewalStatuses[index] = areShares ? await renewByParts(port, lease) : { status: 'unknown', error };
    }
  }
}

/** Renews a share one key at a time. The lock key comes first: a share lasts no longer than the mark there. */
async function renewByParts(port: RedisPort, { keys, grant, ttlMs }: RenewableLease): Promise<RenewalStatus> {
  const { acquisitionId, mode } = grant.request;
  const ttl = String(ttlMs);
  const { lock } = keys;
  const holders = holdersKey(keys);
  try {
    if (mode.kind === 'exclusive') {
      // The downgrade may have failed. The exclusive form is tried before the mark: a share never becomes exclusive again.
      const [reply] = listIn(
        await runScript(port, scripts.renew, [lock], [beginningOf(grant), ttl], mayAlwaysRepeat),
        1,
      );
      const renewalStatus = decodeRenewalStatus(reply);
      if (renewalStatus.status !== 'lost' || renewalStatus.reason !== 'taken-over') return renewalStatus;
    }
    const renewalStatus = decodeRenewalStatus(
      wholeIn(await runScript(port, scripts.renewPart, [lock], [ttl], mayAlwaysRepeat)),
    );
    if (renewalStatus.status !== 'held') return renewalStatus;
    const args = [ttl, acquisitionId, String(grant.fencingToken)];
    return decodeRenewalStatus(
      wholeIn(await runScript(port, scripts.renewPart, [holders], args, mayAlwaysRepeat)),
    );
  } catch (error) {
    return { status: 'unknown', error };
  }
}

function chunksOf({ cluster }: RedisPort, leases: readonly RenewableLease[]): LeaseChunk[] {
  const open = new Map<number, LeaseChunk>();
  const chunks: LeaseChunk[] = [];
  for (const [index, lease] of leases.entries()) {
    const { grant, mayBeShared } = lease;
    const areShares = shareWeight(grant.request.mode, mayBeShared) !== undefined;
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

/** Resolves to one reply for each lease of the chunk. */
async function runOnChunk(
  port: RedisPort,
  leases: readonly RenewableLease[],
  { areShares, indexes }: LeaseChunk,
): Promise<readonly unknown[]> {
  const keys: string[] = [];
  const args: string[] = [];
  for (const index of indexes) {
    const lease = leases[index] as RenewableLease;
    keys.push(lease.keys.lock);
    if (areShares) keys.push(holdersKey(lease.keys));
    const { request, fencingToken } = lease.grant;
    if (areShares) args.push(request.acquisitionId, String(fencingToken), String(lease.ttlMs));
    else args.push(beginningOf(lease.grant), String(lease.ttlMs));
  }
  const reply = await runScript(
    port,
    areShares ? scripts.renewShares : scripts.renew,
    keys,
    args,
    mayAlwaysRepeat,
  );
  return listIn(reply, indexes.length);
}
