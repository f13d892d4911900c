import {
  type AcquireRequest,
  type Attempt,
  type Call,
  type Grant,
  type Holder,
  type LockBackend,
  refuseAfterClose,
  type RenewalStatus,
  type RenewItem,
  type ResourceState,
} from '@locks/core/backend';
import type { RedisPort } from '@locks/redis-protocol';
import {
  isOver,
  isRetryableRedisError,
  mayAlwaysRepeat,
  partsOf,
  refuseQueued,
  runScript,
  tokenIn,
  undoLate,
  UnexpectedReplyError,
  wholeIn,
} from '@locks/redis-protocol/kit';
import { capabilitiesWith, type RedissonCapabilities } from './capabilities.ts';
import { decodeHolders } from './holders.ts';
import { fieldOf, freshLatch, keysOf, type RedissonKeys, refuseSplitName } from './keys.ts';
import { HintedWaiters } from './hinted-waiters.ts';
import { type CheckedRedissonOptions, checkOptions, type RedissonBackendOptions } from './options.ts';
import { Sharding } from './publish-command.ts';
import { renewAll } from './renewal.ts';
import * as scripts from './scripts.ts';

/** How long the outcome of a release is kept for a command that the client sends again, in milliseconds. */
const LATCH_MS = '10000';

/**
 * The locks of Redisson over any Redis client that has a {@link RedisPort}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function createRedissonBackend(
  port: RedisPort,
  options: RedissonBackendOptions | undefined,
): LockBackend<RedissonCapabilities> {
  return new RedissonBackend(port, checkOptions(options, port.keyPrefix));
}

class RedissonBackend implements LockBackend<RedissonCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'redisson';
  readonly capabilities: RedissonCapabilities;
  readonly isClientClosed?: (() => boolean) | undefined;
  readonly #port: RedisPort;
  readonly #options: CheckedRedissonOptions;
  readonly #sharding: Sharding;
  readonly #waiters: HintedWaiters;

  constructor(port: RedisPort, options: CheckedRedissonOptions) {
    this.capabilities = capabilitiesWith(options.fencing ? 'volatile' : 'none');
    this.isClientClosed = port.isClientClosed?.bind(port);
    this.#port = port;
    this.#options = options;
    this.#sharding = new Sharding(port, options);
    this.#waiters = new HintedWaiters(port, this.#sharding, options.maxPollMs);
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const keys = this.#keysOf(request.resource);
    if (this.#port.cluster) refuseSplitName(keys);
    await this.#sharding.decide();
    if (enqueue) this.#waiters.register(request, call);
    // Counted from before the sending: the server may start the lease at any later moment (docs/spec.md §1.2).
    const countedFrom = call.now();
    const args = [fieldOf(request), String(request.ttlMs)];
    let reply: unknown;
    try {
      const mayRepeat = (): boolean => !isOver(call);
      reply = await runScript(this.#port, scripts.acquire, this.#withToken(keys), args, mayRepeat);
    } catch (error) {
      this.#waiters.remove(request);
      undoLate(error, () => this.abandon(request));
      throw error;
    }
    const [word, left, token] = partsOf(reply);
    switch (word) {
      case 'granted': {
        this.#waiters.remove(request);
        const fencingToken = this.#options.fencing ? { fencingToken: tokenIn(token) } : undefined;
        return {
          status: 'granted',
          grant: { request, countedFrom, validForMs: wholeIn(left), ...fencingToken },
        };
      }
      case 'contended':
        if (enqueue) this.#waiters.onContended(request, keys);
        return { status: 'contended', retryAfterMs: this.#retryAfterMs(wholeIn(left)) };
      default:
        this.#waiters.remove(request);
        throw new UnexpectedReplyError(reply);
    }
  }

  /** A key is gone one millisecond after its last one; a negative time is that of a key without an end. */
  #retryAfterMs(leftMs: number): number {
    const { maxPollMs } = this.#options;
    return leftMs < 0 ? maxPollMs : Math.min(leftMs + 1, maxPollMs);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<undefined> {
    return this.#waiters.awaitTurn(request, call);
  }

  async abandon(request: AcquireRequest): Promise<void> {
    this.#waiters.remove(request);
    await this.#release(request, false);
  }

  renew(items: readonly RenewItem[]): Promise<readonly RenewalStatus[]> {
    return renewAll(this.#port, items, (resource) => this.#keysOf(resource));
  }

  async release({ request }: Grant): Promise<'released' | 'not-held' | 'unknown'> {
    const { reconnects } = this.#port;
    if (await this.#release(request, true)) return 'released';
    // After a lost connection clients repeat unanswered commands: the first sending may have released at a server that is gone now.
    return this.#port.reconnects === reconnects ? 'not-held' : 'unknown';
  }

  async #release(request: AcquireRequest, latched: boolean): Promise<boolean> {
    const { lock, channel } = this.#keysOf(request.resource);
    await this.#sharding.decide();
    const keys = latched ? [lock, freshLatch(lock)] : [lock];
    const args = [fieldOf(request), channel, this.#sharding.command, LATCH_MS];
    const reply = await runScript(this.#port, scripts.release, keys, args, mayAlwaysRepeat);
    switch (reply) {
      case 'released':
        this.#waiters.released(request.resource);
        return true;
      case 'not-held':
        return false;
      default:
        throw new UnexpectedReplyError(reply);
    }
  }

  async inspect(resource: string): Promise<ResourceState> {
    const keys = this.#withToken(this.#keysOf(resource));
    const holders = decodeHolders(await runScript(this.#port, scripts.inspect, keys, [], mayAlwaysRepeat));
    return { name: resource, holders, waiters: [] };
  }

  async forceRelease(resource: string, expectedId: string | undefined): Promise<readonly Holder[]> {
    const keys = this.#keysOf(resource);
    await this.#sharding.decide();
    const args = [keys.channel, this.#sharding.command];
    if (expectedId !== undefined) args.push(`${expectedId}:`);
    const ended = decodeHolders(
      await runScript(this.#port, scripts.forceRelease, this.#withToken(keys), args, mayAlwaysRepeat),
    );
    if (ended.length > 0) this.#waiters.released(resource);
    return ended;
  }

  async ping(): Promise<void> {
    refuseQueued(await this.#port.send('', ['PING']));
  }

  connectionError(request?: AcquireRequest): unknown {
    return this.#port.connectionError?.(request && this.#keysOf(request.resource).slot);
  }

  isRetryable(error: unknown): boolean {
    return isRetryableRedisError(error);
  }

  async close(): Promise<void> {
    this.#waiters.close();
    await this.#port.close();
  }

  #keysOf(resource: string): RedissonKeys {
    return keysOf(this.#options.prefix, resource);
  }

  #withToken({ lock, token }: RedissonKeys): string[] {
    return this.#options.fencing ? [lock, token] : [lock];
  }
}
