// One file: the methods of the contract, one script each. What has a thought of its own stands beside it.
import {
  type AcquireRequest,
  type Attempt,
  type BackendCapabilities,
  type Call,
  type Conflict,
  type Grant,
  type Holder,
  type InspectOptions,
  type LockBackend,
  refuseAfterClose,
  type RenewItem,
  type ResourceState,
  type RenewalStatus,
  type StoreLayout,
} from '@locks/core/backend';
import { acquireCommand } from './acquire-command.ts';
import { warnOfEviction } from './eviction.ts';
import { withFunctions } from './functions.ts';
import { type Script, scripts } from './generated/scripts.ts';
import { isRedisGrant, mayBeShared, type RedisGrant } from './grant.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import { redisLayout } from './layout.ts';
import { SubscribedWaiters } from './subscribed-waiters.ts';
import { undoLate } from './login-watch.ts';
import { shareWeight } from './mode.ts';
import { type CheckedRedisOptions, checkOptions, type RedisBackendOptions } from './options.ts';
import type { RedisPort } from './port.ts';
import { RedisRelease } from './release.ts';
import { renewAll } from './renewal.ts';
import {
  decodeAttempt,
  decodeDowngrade,
  decodeForceRelease,
  decodeRelease,
  decodeResize,
  type RedisHandOff,
} from './replies.ts';
import { refuseQueued } from './reply-shape.ts';
import { ReplicationError, Replicas } from './replicas.ts';
import { isRetryableRedisError, isSplitSlot } from './retryable.ts';
import { isOver, mayAlwaysRepeat, recover, runScript } from './run-script.ts';
import { inspect, list } from './states.ts';
import { takeMany } from './take-many.ts';
import { CHECKS_ALIVE } from './waiter-heartbeat.ts';

const capabilities = {
  tenure: 'lease',
  renewal: 'any-client',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters', 'many'],
} as const satisfies BackendCapabilities;

/** The capabilities in a cluster, where names are in different slots, so no step takes several. */
const clusterCapabilities = {
  ...capabilities,
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters'],
} as const satisfies BackendCapabilities;

/** The type of the capabilities of the Redis backends; in a cluster without `many`. */
export type RedisCapabilities = typeof capabilities | typeof clusterCapabilities;

/**
 * The lock protocol over any Redis client that has a {@link RedisPort}.
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function createRedisBackend(
  port: RedisPort,
  options: RedisBackendOptions | undefined,
): LockBackend<RedisCapabilities> {
  const checked = checkOptions(options, port.keyPrefix, port.cluster);
  if (!checked.functions) return new RedisBackend(port, checked, undefined);
  const { calling, load } = withFunctions(port);
  return new RedisBackend(calling, checked, load);
}

/** Every method that core calls. The file is longer than others for their number; what they do is in the files that it imports. */
class RedisBackend implements LockBackend<RedisCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities: RedisCapabilities;
  readonly isClientClosed?: (() => boolean) | undefined;
  readonly attemptMany?: (
    requests: readonly AcquireRequest[],
    call: Call,
  ) => Promise<readonly Grant[] | undefined>;
  readonly #port: RedisPort;
  readonly #options: CheckedRedisOptions;
  readonly #layout: StoreLayout;
  readonly #waiters: SubscribedWaiters;
  readonly #replicas: Replicas | undefined;
  readonly #releases: RedisRelease;
  readonly #loadFunctions: (() => Promise<void>) | undefined;
  #isEvictionChecked = false;

  /** @param loadFunctions - loads the library, where functions take the place of scripts */
  constructor(
    port: RedisPort,
    options: CheckedRedisOptions,
    loadFunctions: (() => Promise<void>) | undefined,
  ) {
    this.name = port.name;
    this.capabilities = port.cluster ? clusterCapabilities : capabilities;
    if (!port.cluster) this.attemptMany = (requests, call) => this.#attemptMany(requests, call);
    this.isClientClosed = port.isClientClosed?.bind(port);
    this.#port = port;
    this.#options = options;
    this.#loadFunctions = loadFunctions;
    this.#layout = redisLayout(port, options.prefix);
    this.#waiters = new SubscribedWaiters(port, options);
    this.#replicas = options.minReplicas > 0 ? new Replicas(port, options) : undefined;
    this.#releases = new RedisRelease(port);
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    if (!this.#layout.isKnown) {
      await this.#layout.check();
      // The request was abandoned meanwhile: its command would come after the abandon.
      if (isOver(call)) return { status: 'contended' };
    }
    const keys = this.#options.lockKeys.of(request.resource);
    const sentAt = call.now();
    const { reconnects } = this.#port;
    const enqueueParams = enqueue ? this.#waiters.register(request, keys.slot, sentAt) : undefined;
    const aliveMs = CHECKS_ALIVE * this.#waiters.heartbeat.intervalMs;
    const command = acquireCommand(request, keys, enqueueParams && { ...enqueueParams, aliveMs });
    let encoded: unknown;
    try {
      encoded = await this.#port.send(keys.lock, command, scripts.acquire.source);
    } catch (error) {
      undoLate(error, () => this.abandon(request, call));
      if (isOver(call)) throw error;
      encoded = await recover(this.#port, scripts.acquire, keys.lock, command, error);
    }
    const reply = decodeAttempt(encoded);
    if (reply.handOffs.length > 0) this.#handOff(reply.handOffs, keys, call, sentAt);
    switch (reply.status) {
      case 'granted': {
        // The validity is counted from before the sending: the server may have started the lease at any later moment.
        const validForMs = reply.leftMs ?? request.ttlMs;
        const fencingToken = reply.token;
        const grant: RedisGrant = {
          request,
          fencingToken,
          countedFrom: sentAt,
          validForMs,
          keys,
          nobodyWaited: reply.leftMs === undefined,
          mayBeShared: false,
        };
        // An earlier sending may have joined the queue and got a hand-off, whose message may arrive late.
        const mayBeOlder = reply.leftMs !== undefined || (enqueue && this.#port.reconnects !== reconnects);
        if (enqueue || mayBeOlder) this.#waiters.onGranted(request, validForMs, mayBeOlder);
        if (this.#replicas !== undefined) await this.#replicate(this.#replicas, grant, call);
        return { status: 'granted', grant };
      }
      case 'waiting':
        if (enqueueParams !== undefined) this.#waiters.onQueued(request, call, sentAt, enqueueParams, reply);
        // The server's eviction policy is checked once, at the first contention.
        if (!this.#isEvictionChecked && !this.#port.isPolled) void warnOfEviction(this.#port);
        this.#isEvictionChecked = true;
        return { status: 'contended' };
      case 'reached-max-waiters':
        return { status: this.#waiters.onRefused(request) ? 'contended' : 'full' };
      case 'conflict':
        // The limit may have been changed for all waiters, this one among them.
        if (this.#waiters.onRefused(request)) return { status: 'contended' };
        return { status: 'conflict', with: reply.with };
      case 'contended':
        return { status: 'contended' };
      default:
        return reply satisfies never;
    }
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const grant = await this.#waiters.awaitTurn(request, call);
    if (this.#replicas !== undefined && grant !== undefined) {
      await this.#replicate(this.#replicas, grant, call);
    }
    return grant;
  }

  /** Rejects and releases the grant unless enough replicas have it. */
  async #replicate(replicas: Replicas, grant: Grant, call: Call): Promise<void> {
    const { minReplicas, replicaTimeoutMs } = this.#options;
    try {
      const acknowledged = await replicas.acknowledged(this.#keysOf(grant), grant.request);
      if (acknowledged < minReplicas) throw new ReplicationError(acknowledged, minReplicas, replicaTimeoutMs);
    } catch (error) {
      await this.abandon(grant.request, call);
      throw error;
    }
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    const { acquisitionId, resource } = request;
    this.#waiters.forget(request);
    const keys = this.#options.lockKeys.of(resource);
    const { replyAddress } = this.#waiters.subscription;
    const args = [acquisitionId, replyAddress, ...this.#waiters.membersOf(request)];
    try {
      await this.#run(scripts.abandon, keys, [keys.lock, keys.token, keys.queue], args, decodeRelease, call);
    } catch (error) {
      // The slot is being migrated: the hold ends now, and an entry of the queue is abandoned when its turn comes.
      if (!isSplitSlot(error)) throw error;
      await this.#releases.releaseKey(keys, acquisitionId, shareWeight(request.mode, false));
    }
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const leases = items.map(({ grant, ttlMs }) => ({
      keys: this.#keysOf(grant),
      grant,
      mayBeShared: mayBeShared(grant),
      ttlMs,
    }));
    const renewalStatuses = await renewAll(this.#port, leases, call);
    for (const [index, { grant, ttlMs }] of items.entries()) {
      const { status } = renewalStatuses[index] as RenewalStatus;
      if (status === 'held') this.#waiters.extend(grant.request.acquisitionId, ttlMs);
      // The request came after a downgrade that was sent later, and asked for the exclusive form.
      else if (status === 'lost' && leases[index]?.mayBeShared !== mayBeShared(grant))
        renewalStatuses[index] = { status: 'unknown', error: new Error('downgraded') };
    }
    return renewalStatuses;
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const keys = this.#keysOf(grant);
    const { reconnects } = this.#port;
    const sentAt = call.now();
    const reply = await this.#releases.release(grant, keys, this.#waiters.subscription.replyAddress);
    // The waiter is forgotten only now: before, a late message of its hand-off would abandon it, and a repeated release would
    // not find it.
    this.#waiters.forget(grant.request);
    // The hand-off precedes the end of the release: waiters of this process get the lock in the same iteration of the event loop.
    if (reply.handOffs.length > 0) this.#handOff(reply.handOffs, keys, call, sentAt);
    // After a lost connection clients repeat unanswered commands: the first sending of this one may have released.
    if (reply.status === 'not-held' && this.#port.reconnects !== reconnects) return 'unknown';
    return reply.status;
  }

  async #attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    if (!this.#layout.isKnown) {
      await this.#layout.check();
      if (isOver(call)) return undefined;
    }
    const { lockKeys } = this.#options;
    const grants = await takeMany(this.#port, lockKeys, requests, call).catch((error: unknown) => {
      undoLate(error, () => Promise.all(requests.map((request) => this.abandon(request, call))));
      throw error;
    });
    const replicas = this.#replicas;
    if (grants === undefined || replicas === undefined) return grants;
    try {
      await Promise.all(grants.map((grant) => this.#replicate(replicas, grant, call)));
    } catch (error) {
      await Promise.all(requests.map((request) => this.abandon(request, call)));
      throw error;
    }
    return grants;
  }

  async downgrade(grant: Grant, call: Call): Promise<RenewalStatus> {
    const keys = this.#keysOf(grant);
    // Renewals and the release handle both forms from now on, also without an answer.
    if (isRedisGrant(grant)) grant.mayBeShared = true;
    const args = [grant.request.acquisitionId, this.#waiters.subscription.replyAddress];
    return (await this.#run(scripts.downgrade, keys, allOf(keys), args, decodeDowngrade, call)).renewalStatus;
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    if (!this.#layout.isKnown) await this.#layout.check();
    const keys = this.#options.lockKeys.of(resource);
    const args = [String(limit), this.#waiters.subscription.replyAddress];
    const { conflict } = await this.#run(scripts.resize, keys, allOf(keys), args, decodeResize, call);
    return conflict === undefined ? { status: 'set' } : { status: 'conflict', with: conflict };
  }

  inspect(resource: string, _call?: Call, options?: InspectOptions): Promise<ResourceState> {
    return inspect(this.#port, this.#options.lockKeys.of(resource), resource, options);
  }

  connectionError(request?: AcquireRequest): unknown {
    const slot = request && this.#options.lockKeys.of(request.resource).slot;
    return this.#port.connectionError?.(slot) ?? (request && this.#waiters.checkErrorOf(request));
  }

  async ping(): Promise<void> {
    // The client chooses the node in a cluster.
    refuseQueued(await this.#port.send(this.#options.prefix, ['PING']));
  }

  /** Writes the marker of the layout, and loads the library of functions; Redis needs nothing else before the first lock. */
  async prepare(): Promise<void> {
    await this.#layout.check();
    await this.#loadFunctions?.();
  }

  list(prefix: string): AsyncIterable<ResourceState> {
    return list(this.#port, this.#options.lockKeys, prefix);
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    if (!this.#layout.isKnown) await this.#layout.check();
    const keys = this.#options.lockKeys.of(resource);
    const args = [this.#waiters.subscription.replyAddress, ...(expectedId === undefined ? [] : [expectedId])];
    return (await this.#run(scripts.forceRelease, keys, allOf(keys), args, decodeForceRelease, call)).ended;
  }

  isRetryable(error: unknown): boolean {
    return isRetryableRedisError(error);
  }

  async close(): Promise<void> {
    this.#waiters.close();
    this.#replicas?.close();
    await this.#port.close();
  }

  /** Runs a script that may hand the resource off to waiters of this process. */
  async #run<R extends { readonly handOffs: readonly RedisHandOff[] }>(
    script: Script,
    keys: ResourceKeys,
    sent: readonly string[],
    args: readonly string[],
    decode: (reply: unknown) => R,
    call: Call,
  ): Promise<R> {
    const sentAt = call.now();
    const reply = decode(await runScript(this.#port, script, sent, args, mayAlwaysRepeat));
    this.#handOff(reply.handOffs, keys, call, sentAt);
    return reply;
  }

  #handOff(handOffs: readonly RedisHandOff[], keys: ResourceKeys, call: Call, sentAt: number): void {
    this.#waiters.handOff(handOffs, keys.lock, () => call.now() - sentAt);
  }

  #keysOf(grant: Grant): ResourceKeys {
    return isRedisGrant(grant) ? grant.keys : this.#options.lockKeys.of(grant.request.resource);
  }
}

function allOf(keys: ResourceKeys): readonly string[] {
  return [keys.lock, keys.token, keys.queue, holdersKey(keys)];
}
