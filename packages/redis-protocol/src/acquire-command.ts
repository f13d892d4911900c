import type { AcquireRequest } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import { limitArgument, weightArgument } from './mode.ts';
import type { RedisCommand } from './port.ts';

/** What an attempt tells that may join the queue. */
interface Joining {
  readonly replyAddress: string;
  /** For how long the process counts as alive, in milliseconds. */
  readonly aliveMs: number;
  readonly isQueueRefreshed: boolean;
}

/** The arguments before those of another mode, of an attempt that does not join the queue. */
const NOT_TO_JOIN = ['', '', '', ''];

/** Makes the command of an attempt; `joining`: only if it may join the queue. See `acquire.lua`. */
export function acquireCommand(
  request: AcquireRequest,
  keys: ResourceKeys,
  joining: Joining | undefined,
): RedisCommand {
  const { acquisitionId, adopts, label = '', maxWaiters, mode, steal, ttlMs } = request;
  const { lock, token, queue } = keys;
  const { sha1 } = scripts.acquire;
  const isPlain = mode.kind === 'exclusive' && !steal && adopts === undefined;
  const command: [string, ...string[]] = ['EVALSHA', sha1, isPlain ? '3' : '4', lock, token, queue];
  if (!isPlain) command.push(holdersKey(keys));
  command.push(acquisitionId, String(ttlMs), label);
  if (joining !== undefined) {
    const { aliveMs, isQueueRefreshed, replyAddress } = joining;
    command.push(replyAddress, String(aliveMs));
    // The server takes no time for arguments that are left out.
    if (!isPlain || isQueueRefreshed || maxWaiters !== undefined) command.push(String(maxWaiters ?? ''));
    if (!isPlain || isQueueRefreshed) command.push(isQueueRefreshed ? 'refreshed' : '');
  } else if (!isPlain) command.push(...NOT_TO_JOIN);
  if (!isPlain) command.push(limitArgument(mode), weightArgument(mode));
  if (steal) command.push('steal');
  else if (adopts !== undefined) command.push('adopt', adopts);
  return command;
}
