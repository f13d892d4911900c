import type { AcquireRequest, Call } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import type { RedisGrant } from './grant.ts';
import { holdersKey, type LockKeys, type ResourceKeys } from './keys.ts';
import { limitArgument, weightArgument } from './mode.ts';
import type { RedisPort } from './port.ts';
import { decodeMany } from './replies.ts';
import { isOver, runScript } from './run-script.ts';

/** Takes all of several locks in one step; `undefined`: one of them is not free, and none was taken. */
export async function takeMany(
  port: RedisPort,
  lockKeys: LockKeys,
  requests: readonly AcquireRequest[],
  call: Call,
): Promise<readonly RedisGrant[] | undefined> {
  const keys = requests.map(({ resource }) => lockKeys.of(resource));
  const args = requests.flatMap(({ acquisitionId, ttlMs, label, mode }) => [
    acquisitionId,
    String(ttlMs),
    label ?? '',
    limitArgument(mode),
    weightArgument(mode),
  ]);
  // The validity is counted from before the sending: the server may have started the leases at any later moment.
  const countedFrom = call.now();
  const reply = await runScript(
    port,
    scripts.many,
    keys.flatMap((of) => [of.lock, of.token, of.queue, holdersKey(of)]),
    args,
    () => !isOver(call),
  );
  return decodeMany(reply)?.map(({ token, leftMs }, at) => ({
    request: requests[at] as AcquireRequest,
    fencingToken: token,
    countedFrom,
    validForMs: leftMs,
    keys: keys[at] as ResourceKeys,
    nobodyWaited: true,
    mayBeShared: false,
  }));
}
