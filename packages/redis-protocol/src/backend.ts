import { LockError } from '@locks/core';
import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Conflict,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core/backend';
import { warnOfEviction } from './eviction.ts';
import { type Script, scripts } from './generated/scripts.ts';
import { RedisGrant } from './grant.ts';
import { encodeName, holdersKey, keysOfLock, type ResourceKeys } from './keys.ts';
import { limitOf, modeOfLimit, shareWeight, weightOf } from './mode.ts';
import { settle, type RedisBackendOptions, type Settings } from './options.ts';
import type { RedisCommand, RedisPort } from './port.ts';
import { renewAll } from './renewal.ts';
import { ReplicationError, Replicas } from './replicas.ts';
import { isHalfDone, isRetryableRedisError, isSplitSlot } from './retryable.ts';
import { recover, runScript } from './run-script.ts';
import { holdersOf, inspect, list } from './states.ts';
import { WaitingRoom } from './waiting-room.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
} as const satisfies BackendCapabilities;

/** In a cluster names live in different slots: no step takes several. */
const clusterCapabilities = {
  ...capabilities,
  features: ['list', 'waiters', 'force-release', 'steal'],
} as const satisfies BackendCapabilities;

export type RedisCapabilities = typeof capabilities | typeof clusterCapabilities;

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
  readonly capabilities: RedisCapabilities;
  readonly attemptMany?: (
    requests: readonly AcquireRequest[],
    call: Call,
  ) => Promise<readonly Grant[] | undefined>;
  readonly #port: RedisPort;
  readonly #prefix: string;
  readonly #room: WaitingRoom;
  readonly #replicas: Replicas | undefined;
  readonly #settings: Settings;
  #looked = false;
  #closed = false;

  constructor(port: RedisPort, settings: Settings) {
    this.name = port.name;
    this.capabilities = port.cluster ? clusterCapabilities : capabilities;
    if (!port.cluster) this.attemptMany = (requests, call) => this.#attemptMany(requests, call);
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
    const { reconnects } = this.#port;
    const isRepeated = enqueue && this.#room.enter(id);
    const queue = enqueue ? this.#room.queueArgument(id) : undefined;
    const command = acquireCommand(request, keys, queue);
    let reply: unknown;
    try {
      reply = await this.#port.send(keys.lock, command);
    } catch (error) {
      reply = await this.#recoverAttempt(keys, call, command, error);
    }
    const attempt = this.#readAttempt(request, keys, call, sentAt, queue, reply);
    if (enqueue) this.#room.answered(id);
    // An earlier sending may have queued it, and its turn may have come and lapsed: told of that late, it holds all the same.
    const mayHaveRun = isRepeated || (enqueue && this.#port.reconnects !== reconnects);
    if (mayHaveRun && attempt.status === 'granted') this.#room.settle(id, request.ttlMs);
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
      }
      // PTTL rounds up.
      const validForMs = Number(reply[1]) - 1;
      if (first > 0) this.#room.settle(request.acquisitionId, validForMs);
      this.#room.handLocally(reply, 2, keys, () => call.now() - sentAt);
      if (first < 0) return contended;
      if (first === 0) return { status: 'conflict', with: modeOfLimit(Number(reply[1])) };
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
      const acknowledged = await replicas.acknowledged(this.#keysOf(grant), grant.request);
      if (acknowledged < minReplicas) throw new ReplicationError(acknowledged, minReplicas, replicaTimeoutMs);
    } catch (error) {
      await this.abandon(grant.request, call);
      throw error;
    }
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    this.#room.forget(request.acquisitionId);
    this.#assertUsable(request.resource);
    const keys = keysOfLock(this.#prefix + encodeName(request.resource));
    const members = this.#room.membersOf(request);
    const sentAt = call.now();
    try {
      const reply = await runScript(
        this.#port,
        scripts.abandon,
        [keys.lock, keys.token, keys.queue],
        [request.acquisitionId, this.#room.subscription.notify, ...members],
      );
      if (Array.isArray(reply)) this.#room.handLocally(reply, 0, keys, () => call.now() - sentAt);
    } catch (error) {
      // A slot on the move: its hold ends now; an entry in the queue is given back when its turn comes.
      if (!isSplitSlot(error)) throw error;
      await this.#releaseKey(keys, request.acquisitionId, shareWeight({ request }));
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
    const { notify } = this.#room.subscription;
    const { lock, token, queue } = keys;
    const share = shareWeight(grant);
    const { sha1 } = scripts.release;
    const command: RedisCommand =
      share === undefined
        ? ['EVALSHA', sha1, '3', lock, token, queue, acquisitionId, notify]
        : ['EVALSHA', sha1, '4', lock, token, queue, holdersKey(keys), acquisitionId, notify, share];
    let reply: unknown;
    try {
      reply = await this.#port.send(lock, command);
    } catch (error) {
      reply = await this.#recoverRelease(keys, acquisitionId, share, command, error);
    }
    if (Array.isArray(reply)) {
      // Before the release is told: waiters of this process get the lock in the same turn of the event loop.
      this.#room.handLocally(reply, 0, keys, () => call.now() - sentAt);
      return 'released';
    }
    if (Number(reply) === 1) return 'released';
    if (reply === 'half-done') return 'unknown';
    // Clients send again what was unanswered when a connection broke: then it may have been this very call that released.
    return this.#port.reconnects === reconnects ? 'not-held' : 'unknown';
  }

  /** In a slot on the move the lock key alone is freed; waiters are served by their next check. */
  async #recoverRelease(
    keys: ResourceKeys,
    id: string,
    share: string | undefined,
    command: RedisCommand,
    error: unknown,
  ): Promise<unknown> {
    let failure = error;
    if (!isSplitSlot(error)) {
      try {
        return await recover(this.#port, scripts.release, keys.lock, command, error);
      } catch (again) {
        failure = again;
      }
    }
    if (!isSplitSlot(failure)) throw failure;
    const reply = await this.#releaseKey(keys, id, share);
    return Number(reply) === 0 && isHalfDone(failure) ? 'half-done' : reply;
  }

  /** Ends a hold with commands on one key alone: a share first, and then the lock key tells that it may have ended. */
  async #releaseKey(keys: ResourceKeys, id: string, share: string | undefined): Promise<unknown> {
    const holders = holdersKey(keys);
    const shares = share === undefined ? 0 : Number(await this.#port.send(holders, ['HDEL', holders, id]));
    const reply = Number(await runScript(this.#port, scripts.releaseKey, [keys.lock], [id]));
    return reply || shares;
  }

  async #attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const keys = requests.map(({ resource }) => {
      this.#assertUsable(resource);
      return keysOfLock(this.#prefix + encodeName(resource));
    });
    const sentAt = call.now();
    const reply = await runScript(
      this.#port,
      scripts.many,
      keys.flatMap((of) => [of.lock, of.token, of.queue, holdersKey(of)]) as [string, ...string[]],
      requests.flatMap(({ acquisitionId, ttlMs, label, mode }) => [
        acquisitionId,
        String(ttlMs),
        label ?? '',
        limitOf(mode),
        weightOf(mode),
      ]),
    );
    if (!Array.isArray(reply)) return undefined;
    const grants = requests.map((request, at) => {
      const token = BigInt(reply[2 * at] as number);
      return new RedisGrant(request, keys[at] as ResourceKeys, token, sentAt, Number(reply[2 * at + 1]) - 1);
    });
    const replicas = this.#replicas;
    if (replicas === undefined) return grants;
    try {
      await Promise.all(grants.map((grant) => this.#replicate(replicas, grant, call)));
    } catch (error) {
      await Promise.all(requests.map((request) => this.abandon(request, call)));
      throw error;
    }
    return grants;
  }

  async downgrade(grant: Grant, call: Call): Promise<Standing> {
    this.#assertUsable(grant.request.resource);
    const keys = this.#keysOf(grant);
    // From here on, answered or not: what renews or releases it looks for both.
    if (grant instanceof RedisGrant) grant.mayBeShared = true;
    const sentAt = call.now();
    const reply = await this.#serve(scripts.downgrade, keys, [grant.request.acquisitionId]);
    if (!Array.isArray(reply)) {
      return { status: 'lost', reason: Number(reply) === 0 ? 'force-released' : 'taken-over' };
    }
    this.#room.handLocally(reply, 1, keys, () => call.now() - sentAt);
    return { status: 'held', validForMs: Number(reply[0]) - 1 };
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    this.#assertUsable(resource);
    const keys = keysOfLock(this.#prefix + encodeName(resource));
    const sentAt = call.now();
    const reply = (await this.#serve(scripts.resize, keys, [String(limit)])) as unknown[];
    if (Number(reply[0]) === 0) return { status: 'conflict', with: modeOfLimit(Number(reply[1])) };
    this.#room.handLocally(reply, 1, keys, () => call.now() - sentAt);
    return { status: 'set' };
  }

  /** A script on all keys of a resource that may hand it to waiters of this process. */
  #serve(script: Script, keys: ResourceKeys, args: readonly string[], ...more: string[]): Promise<unknown> {
    return runScript(
      this.#port,
      script,
      [keys.lock, keys.token, keys.queue, holdersKey(keys)],
      [...args, this.#room.subscription.notify, ...more],
    );
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
    const only = expectedId === undefined ? [] : [expectedId];
    const reply = await this.#serve(scripts.forceRelease, keys, [], ...only);
    if (!Array.isArray(reply)) return [];
    this.#room.handLocally(reply, 4, keys, () => call.now() - sentAt);
    return holdersOf(reply);
  }

  isRetryable(error: unknown): boolean {
    return isRetryableRedisError(error);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#room.close();
    this.#replicas?.close();
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
  enter: string | undefined,
): RedisCommand {
  const { acquisitionId, label, mode, steal, ttlMs } = request;
  const { lock, token, queue } = keys;
  const plain = mode.kind === 'exclusive' && steal === undefined;
  const command: [string, ...string[]] = [
    'EVALSHA',
    scripts.acquire.sha1,
    plain ? '3' : '4',
    lock,
    token,
    queue,
  ];
  if (!plain) command.push(holdersKey(keys));
  command.push(acquisitionId, String(ttlMs), label ?? '');
  if (plain && enter === undefined) return command;
  command.push(enter ?? '');
  if (plain) return command;
  command.push(limitOf(mode), weightOf(mode));
  if (steal) command.push('steal');
  return command;
}
