import type { Grant } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { mayBeShared, type RedisGrant } from './grant.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import { shareWeight } from './mode.ts';
import { NativeRelease } from './native-release.ts';
import type { RedisCommand, RedisPort } from './port.ts';
import { decodeRelease, RELEASED, type ReleaseReply } from './replies.ts';
import { wholeIn } from './reply-shape.ts';
import { isHalfDone, isSplitSlot } from './retryable.ts';
import { mayAlwaysRepeat, recover, runScript } from './run-script.ts';
import { formatValue } from './value.ts';

/** Sends releases: by a command of the server's own if nobody waited, else by the script; in a split slot key by key. */
export class RedisRelease {
  readonly #port: RedisPort;
  readonly #native: NativeRelease;
  /** The first release brings the source of the script: thousands that are sent behind it find that the server knows it. */
  #hasSentSource = false;

  constructor(port: RedisPort) {
    this.#port = port;
    this.#native = new NativeRelease(port);
  }

  async release(grant: Grant, keys: ResourceKeys, replyAddress: string): Promise<ReleaseReply> {
    const { acquisitionId } = grant.request;
    const { lock, token, queue } = keys;
    const share = shareWeight(grant.request.mode, mayBeShared(grant));
    const { sha1, source } = scripts.release;
    const rest =
      share === undefined
        ? ['3', lock, token, queue, acquisitionId, replyAddress]
        : ['4', lock, token, queue, holdersKey(keys), acquisitionId, replyAddress, share];
    const command: RedisCommand = ['EVALSHA', sha1, ...rest];
    try {
      if (share === undefined && (grant as RedisGrant).nobodyWaited && this.#native.mayTry()) {
        if (await this.#native.release(lock, formatValue(grant))) return RELEASED;
      }
      const first: RedisCommand | undefined = this.#hasSentSource ? undefined : ['EVAL', source, ...rest];
      this.#hasSentSource = true;
      return decodeRelease(await this.#port.send(lock, first ?? command, source));
    } catch (error) {
      return this.#recover(keys, acquisitionId, share, command, error);
    }
  }

  /** Releases in a slot that is being migrated: only the lock key is freed, and waiters are served by their next check. */
  async #recover(
    keys: ResourceKeys,
    id: string,
    share: string | undefined,
    command: RedisCommand,
    error: unknown,
  ): Promise<ReleaseReply> {
    let failure = error;
    if (!isSplitSlot(error)) {
      try {
        return decodeRelease(await recover(this.#port, scripts.release, keys.lock, command, error));
      } catch (again) {
        failure = again;
      }
    }
    if (!isSplitSlot(failure)) throw failure;
    const reply = await this.releaseKey(keys, id, share);
    return reply.status === 'not-held' && isHalfDone(failure) ? { ...reply, status: 'unknown' } : reply;
  }

  /** Ends a hold by commands on one key each: a share first, then the lock key, which notes that shares may have ended. */
  async releaseKey(keys: ResourceKeys, id: string, share: string | undefined): Promise<ReleaseReply> {
    const holders = holdersKey(keys);
    const ended = share === undefined ? 0 : wholeIn(await this.#port.send(holders, ['HDEL', holders, id]));
    const reply = decodeRelease(
      await runScript(this.#port, scripts.releaseKey, [keys.lock], [id], mayAlwaysRepeat),
    );
    return ended > 0 ? RELEASED : reply;
  }
}
