import { LockError } from '@locks/core';
import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core/backend';
import { warnOfEviction } from './eviction.ts';
import { scripts } from './generated/scripts.ts';
import { RedisGrant } from './grant.ts';
import { encodeName, keysOfLock, type ResourceKeys } from './keys.ts';
import { settle, type RedisBackendOptions, type Settings } from './options.ts';
import type { RedisCommand, RedisPort } from './port.ts';
import { renewAll } from './renewal.ts';
import { ReplicationError, Replicas } from './replicas.ts';
import { isHalfDone, isRetryableRedisError, isSplitSlot } from './retryable.ts';
import { recover, runScript } from './run-script.ts';
import { holderOf, inspect, list } from './states.ts';
import { WaitingRoom } from './waiting-room.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release'],
} as const satisfies BackendCapabilities;

export type RedisCapabilities = typeof capabilities;

const contended: Attempt = { status: 'contended' };

/** The lock protocol over any Redis client that has a {@link RedisPort}. */
export function createRedisBackend(
  port: RedisPort,
  options: RedisBackendOptions = {},
): LockBackend<RedisCapabilities> {
  return new RedisBackend(port, settle(options, port.keyPrefix, port.cluster));
}

class RedisBackend implements LockBackend<RedisCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities: RedisCapabilities = capabilities;
  readonly #port: RedisPort;
  readonly #prefix: string;
  readonly #room: WaitingRoom;
  readonly #replicas: Replicas | undefined;
  readonly #settings: Settings;
  #looked = false;
  #closed = false;

  constructor(port: RedisPort, settings: Settings) {
    this.name = port.name;
    this.#port = port;
    this.#prefix = settings.prefix;
    this.#settings = settings;
    this.#room = new WaitingRoom(port, settings);
    this.#replicas = settings.minReplicas > 0 ? new Replicas(port, settings) : undefined;
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    this.#assertUsable(request.resource);
    const keys = keysOfLock(this.#prefix + encodeName(request.resource));
    const sentAt = call.now();
    const id = request.acquisitionId;
    if (enqueue) this.#room.enter(id);
    const queue = enqueue ? this.#room.queueArgument(id) : undefined;
    let attempt: Attempt;
    try {
      const command = acquireCommand(request, keys, queue);
      let reply: unknown;
      try {
        reply = await this.#port.send(keys.lock, command);
      } catch (error) {
        reply = await this.#recoverAttempt(keys, call, command, error);
      }
      attempt = this.#readAttempt(request, keys, call, sentAt, queue, reply);
    } finally {
      if (enqueue) this.#room.left(id);
    }
    if (this.#replicas !== undefined && attempt.status === 'granted') {
      await this.#replicate(this.#replicas, attempt.grant, call);
    }
    return attempt;
  }

  #recoverAttempt(keys: ResourceKeys, call: Call, command: RedisCommand, error: unknown): Promise<unknown> {
    // Given up meanwhile: what is sent now would come after its abandon.
    if (call.signal?.aborted || call.now() > call.deadline) throw error;
    return recover(this.#port, scripts.acquire, keys.lock, command, error);
  }

  #readAttempt(
    request: AcquireRequest,
    keys: ResourceKeys,
    call: Call,
    sentAt: number,
    queue: string | undefined,
    reply: unknown,
  ): Attempt {
    if (Array.isArray(reply)) {
      const first = Number(reply[0]);
      if (first < 0) {
        this.#room.admit(request, keys, call, sentAt, queue ?? '', reply);
        if (!this.#looked) void warnOfEviction(this.#port);
        this.#looked = true;
        return contended;
      }
      // PTTL rounds up.
      const validForMs = Number(reply[1]) - 1;
      this.#room.settle(request.acquisitionId, validForMs);
      return { status: 'granted', grant: new RedisGrant(request, keys, BigInt(first), sentAt, validForMs) };
    }
    if (Number(reply) === 0) return contended;
    // Counted from before sending: the server may have started the lease at any later moment.
    const grant = new RedisGrant(request, keys, BigInt(reply as string), sentAt, request.ttlMs);
    return { status: 'granted', grant };
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const grant = await this.#room.awaitTurn(request, call);
    if (this.#replicas !== undefined && grant !== undefined) {
      await this.#replicate(this.#replicas, grant, call);
    }
    return grant;
  }

  /** Gives a grant back and rejects unless enough replicas have it. */
  async #replicate(replicas: Replicas, grant: Grant, call: Call): Promise<void> {
    const { minReplicas, replicaTimeoutMs } = this.#settings;
    try {
      const acknowledged = await replicas.acknowledged(this.#keysOf(grant).lock, grant.request.acquisitionId);
      if (acknowledged < minReplicas) throw new ReplicationError(acknowledged, minReplicas, replicaTimeoutMs);
    } catch (error) {
      await this.abandon(grant.request, call);
      throw error;
    }
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    this.#assertUsable(request.resource);
    const keys = keysOfLock(this.#prefix + encodeName(request.resource));
    const members = this.#room.membersOf(request);
    this.#room.forget(request.acquisitionId);
    const sentAt = call.now();
    try {
      const reply = await runScript(
        this.#port,
        scripts.abandon,
        [keys.lock, keys.token, keys.queue],
        [request.acquisitionId, this.#room.subscription.notify, ...members],
      );
      if (Array.isArray(reply)) this.#room.handLocally(reply, keys, call.now() - sentAt);
    } catch (error) {
      // A slot on the move: its hold ends now; an entry in the queue is given back when its turn comes.
      if (!isSplitSlot(error)) throw error;
      await runScript(this.#port, scripts.releaseKey, [keys.lock], [request.acquisitionId]);
    }
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    const standings = await renewAll(this.#port, items, (item) => this.#keysOf(item.grant), call);
    for (const [index, { grant, ttlMs }] of items.entries()) {
      if (standings[index]?.status === 'held') this.#room.extend(grant.request.acquisitionId, ttlMs);
    }
    return standings;
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    this.#assertUsable(grant.request.resource);
    const { acquisitionId } = grant.request;
    const keys = this.#keysOf(grant);
    this.#room.forget(acquisitionId);
    const { reconnects } = this.#port;
    const sentAt = call.now();
    const command: RedisCommand = [
      'EVALSHA',
      scripts.release.sha1,
      '3',
      keys.lock,
      keys.token,
      keys.queue,
      acquisitionId,
      this.#room.subscription.notify,
    ];
    let reply: unknown;
    try {
      reply = await this.#port.send(keys.lock, command);
    } catch (error) {
      reply = await this.#recoverRelease(keys.lock, acquisitionId, command, error);
    }
    if (Array.isArray(reply)) {
      // Before the release is told: a waiter of this process gets the lock in the same turn of the event loop.
      this.#room.handLocally(reply, keys, call.now() - sentAt);
      return 'released';
    }
    if (Number(reply) === 1) return 'released';
    if (reply === 'half-done') return 'unknown';
    // Clients send again what was unanswered when a connection broke: then it may have been this very call that released.
    return this.#port.reconnects === reconnects ? 'not-held' : 'unknown';
  }

  /** In a slot on the move the lock key alone is freed; waiters are served by their next check. */
  async #recoverRelease(lock: string, id: string, command: RedisCommand, error: unknown): Promise<unknown> {
    let failure = error;
    if (!isSplitSlot(error)) {
      try {
        return await recover(this.#port, scripts.release, lock, command, error);
      } catch (again) {
        failure = again;
      }
    }
    if (!isSplitSlot(failure)) throw failure;
    const reply = await runScript(this.#port, scripts.releaseKey, [lock], [id]);
    return Number(reply) === 0 && isHalfDone(failure) ? 'half-done' : reply;
  }

  inspect(resource: string): Promise<ResourceState> {
    this.#assertUsable(resource);
    return inspect(this.#port, keysOfLock(this.#prefix + encodeName(resource)), resource);
  }

  list(prefix: string): AsyncIterable<ResourceState> {
    this.#assertUsable();
    return list(this.#port, this.#prefix, prefix);
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    this.#assertUsable(resource);
    const keys = keysOfLock(this.#prefix + encodeName(resource));
    const sentAt = call.now();
    const args = [this.#room.subscription.notify, ...(expectedId === undefined ? [] : [expectedId])];
    const reply = await runScript(
      this.#port,
      scripts.forceRelease,
      [keys.lock, keys.token, keys.queue],
      args,
    );
    if (!Array.isArray(reply)) return [];
    if (reply.length > 2) this.#room.handLocally(reply.slice(2), keys, call.now() - sentAt);
    return [holderOf(String(reply[0]), Number(reply[1]))];
  }

  isRetryable(error: unknown): boolean {
    return isRetryableRedisError(error);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#room.close();
    await this.#port.close();
  }

  #keysOf(grant: Grant): ResourceKeys {
    return grant instanceof RedisGrant
      ? grant.keys
      : keysOfLock(this.#prefix + encodeName(grant.request.resource));
  }

  #assertUsable(resource?: string): void {
    if (this.#closed) {
      const details = resource === undefined ? { backend: this.name } : { backend: this.name, resource };
      throw new LockError('LOCK_CLOSED', `the ${this.name} backend was closed: make a new one`, details);
    }
    this.#port.assertUsable();
  }
}

function acquireCommand(
  request: AcquireRequest,
  keys: ResourceKeys,
  queue: string | undefined,
): RedisCommand {
  const command: [string, ...string[]] = [
    'EVALSHA',
    scripts.acquire.sha1,
    '3',
    keys.lock,
    keys.token,
    keys.queue,
    request.acquisitionId,
    String(request.ttlMs),
    request.label ?? '',
  ];
  if (queue !== undefined) command.push(queue);
  return command;
}
