import type { Holder, LossReason, ResourceState } from '@locks/core';
import {
  type LockBackend,
  type AcquireRequest,
  type Attempt,
  type Call,
  type Grant,
  type InspectOptions,
  refuseAfterClose,
  type RenewalStatus,
  type RenewItem,
  type StoreLayout,
  withTimeLimit,
} from '@locks/core/backend';
import { capabilities, type ZooKeeperCapabilities } from './capabilities.ts';
import { hasCode } from './client-port.ts';
import type { ZookeeperQueue } from './zookeeper-queue.ts';
import type { CheckedZookeeperOptions } from './options.ts';
import { zookeeperLayout } from './layout.ts';
import { ResourceNodes } from './resource-nodes.ts';
import { Contender } from './contender.ts';
import { nodeChanged } from './node-changed.ts';
import { holderAt, stateOf } from './resource-state.ts';
import { expired, type ZookeeperSession } from './zookeeper-session.ts';
import { type ZookeeperClientSource, ZookeeperSessions } from './zookeeper-sessions.ts';

/** The age at which a hold gets a watch of its own node; a hold that ends sooner needs none. */
const WATCH_AFTER_MS = 20;
/** How long the deletion of unused nodes, and the end of the session, are waited for when the backend is closed. */
const TIDY_MS = 500;
const SESSION_END_MS = 400;

export class ZooKeeperLockBackend implements LockBackend<ZooKeeperCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities = { ...capabilities };
  readonly isClientClosed?: () => boolean;
  readonly #sessions: ZookeeperSessions<Contender>;
  readonly #resourceNodes: ResourceNodes;
  readonly #layout: StoreLayout;
  /** The holders whose own nodes are not watched yet. */
  readonly #unwatched: Contender[] = [];
  #watchTimer: NodeJS.Timeout | undefined;
  /** The attempts under way, by acquisition id. */
  readonly #attempting = new Map<string, { abandoned: boolean }>();

  constructor(
    name: string,
    source: ZookeeperClientSource,
    { path, idleTtlMs, connectTimeoutMs }: CheckedZookeeperOptions,
  ) {
    this.name = name;
    if (source.kind === 'given') this.isClientClosed = () => source.port.isClientClosed === true;
    this.#sessions = new ZookeeperSessions(source, connectTimeoutMs);
    this.#resourceNodes = new ResourceNodes(path, idleTtlMs, () => this.#sessions.live);
    this.#layout = zookeeperLayout(path, () => {
      if (this.#sessions.live === undefined) throw expired();
      return this.#sessions.live;
    });
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const attempting = { abandoned: false };
    this.#attempting.set(request.acquisitionId, attempting);
    try {
      return await this.#attempt(request, enqueue, call, attempting);
    } finally {
      this.#attempting.delete(request.acquisitionId);
    }
  }

  async #attempt(
    request: AcquireRequest,
    enqueue: boolean,
    call: Call,
    attempting: { readonly abandoned: boolean },
  ): Promise<Attempt> {
    for (;;) {
      const session = await this.#sessions.current(call);
      if (!this.#layout.isKnown && !attempting.abandoned) await this.#layout.check();
      if (session.ended) throw expired();
      const contender = await this.#contenderFor(request, session);
      // The acquisition was abandoned before it had a contender that the abandon could end (docs/spec.md §2.2).
      if (attempting.abandoned && contender.node === undefined) {
        contender.gone();
        return { status: 'contended' };
      }
      const countedFrom = call.now();
      const queue = await contender.readQueue();
      if (session.ended) throw expired();
      // The acquisition was abandoned meanwhile, or an administrator deleted its node.
      if (contender.abandoned) return { status: 'contended' };
      if (queue === undefined) continue;
      const granted = await this.#grantIfFirst(contender, queue, session, countedFrom);
      if (granted !== undefined) return { status: 'granted', grant: granted };
      if (contender.node === undefined) continue;
      if (!enqueue) await contender.leave();
      return { status: 'contended' };
    }
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const session = this.#sessions.live;
    const contender = session?.contenders.get(request.acquisitionId);
    if (session === undefined || contender === undefined) return undefined;
    // The token is needed when the turn comes, and is read during the wait.
    const token = contender.fetchToken();
    token.catch(() => undefined);
    while (contender.blocker !== undefined && !contender.abandoned) {
      const { acquisitionId, name } = contender.blocker;
      const path = `${contender.parent}/${name}`;
      const ahead = session.contenders.get(acquisitionId);
      const changed = await nodeChanged(session, path, call);
      // The end of the session is reported as an error: nothing is known of the resource until there is another session.
      if (session.ended) throw expired();
      if (!changed || contender.abandoned) return undefined;
      const countedFrom = call.now();
      // A waiter right behind a released hold of this session has nobody else ahead: a list would take longer the more wait.
      const isNext = (await ahead?.hasEndedHold(name)) === true && (await contender.isQueued());
      const queue = isNext ? undefined : await contender.readQueue();
      if (!isNext && queue === undefined) return undefined;
      await token;
      const granted = await this.#grantIfFirst(contender, queue, session, countedFrom);
      if (granted !== undefined) return granted;
    }
    return undefined;
  }

  async abandon(request: AcquireRequest): Promise<void> {
    const attempting = this.#attempting.get(request.acquisitionId);
    if (attempting !== undefined) attempting.abandoned = true;
    const contender = this.#contenderOf(request);
    if (contender === undefined) await this.#deleteUnknown(request);
    else await contender.leave();
  }

  renew(items: readonly RenewItem[]): Promise<readonly RenewalStatus[]> {
    return Promise.all(items.map(({ grant }) => this.#renewalStatus(grant)));
  }

  async release({ request }: Grant): Promise<'released' | 'not-held' | 'unknown'> {
    const contender = this.#contenderOf(request);
    if (contender === undefined) return (await this.#deleteUnknown(request)) ? 'released' : 'not-held';
    if (await contender.leave()) return 'released';
    return contender.wasLeftBefore ? 'unknown' : 'not-held';
  }

  async downgrade(grant: Grant): Promise<RenewalStatus> {
    const contender = this.#contenderOf(grant.request);
    return (await contender?.downgrade()) ? { status: 'held' } : lossOf(grant);
  }

  async inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    const session = await this.#sessions.current(call);
    return await stateOf(session, resource, this.#resourceNodes.pathOf(resource), options);
  }

  async ping(call: Call): Promise<void> {
    await (await this.#sessions.current(call)).barrier();
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const session = await this.#sessions.current(call);
    await session.barrier();
    for (const resource of await this.#resourceNodes.resources(session)) {
      if (!resource.startsWith(prefix)) continue;
      const state = await stateOf(session, resource, this.#resourceNodes.pathOf(resource));
      if (state.holders.length + state.waiters.length > 0) yield state;
    }
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const session = await this.#sessions.current(call);
    if (!this.#layout.isKnown) await this.#layout.check();
    const parent = this.#resourceNodes.pathOf(resource);
    const [, queue] = await Promise.all([session.barrier(), session.queue(parent)]);
    const meant = queue.holders.filter(
      ({ acquisitionId }) => expectedId === undefined || acquisitionId === expectedId,
    );
    const ended = await Promise.all(
      meant.map(async (node) => {
        // A hold that becomes a share may have both nodes.
        const nodes = queue.nodesOf(node.acquisitionId);
        const [holder, ...removed] = await Promise.all([
          holderAt(session, parent, node),
          ...nodes.map(({ name }) => session.remove(`${parent}/${name}`)),
        ]);
        return removed.includes(true) ? holder : undefined;
      }),
    );
    return ended.filter((holder) => holder !== undefined);
  }

  /** Makes the node that all locks are under, and the marker of the layout below it. */
  async prepare(call: Call): Promise<void> {
    await this.#sessions.current(call);
    await this.#layout.check();
  }

  connectionError(): unknown {
    return this.#sessions.connectionError();
  }

  isRetryable(error: unknown): boolean {
    return hasCode(error, 'CONNECTION_LOSS', 'NOT_CONNECTED', 'SESSION_EXPIRED');
  }

  async close(): Promise<void> {
    clearTimeout(this.#watchTimer);
    // Unused nodes that a silent server does not delete are found by the search of another process.
    await withTimeLimit(this.#resourceNodes.close(), TIDY_MS, () => undefined);
    await withTimeLimit(this.#sessions.close(), SESSION_END_MS, () => undefined);
  }

  async #contenderFor(request: AcquireRequest, session: ZookeeperSession<Contender>): Promise<Contender> {
    const { acquisitionId } = request;
    const known = session.contenders.get(acquisitionId);
    if (known !== undefined) return known;
    const parent = session.pendingDeletes.get(acquisitionId);
    // The acquisition left a node when its session was considered lost, and the session lived on.
    if (parent !== undefined) await session.deleteNodes(acquisitionId, parent);
    const contender = new Contender(request, session, this.#resourceNodes);
    session.contenders.set(acquisitionId, contender);
    return contender;
  }

  /** Returns the grant, or `undefined` after setting the contender's blocker. Without a queue nobody is ahead. */
  async #grantIfFirst(
    contender: Contender,
    queue: ZookeeperQueue | undefined,
    session: ZookeeperSession<Contender>,
    countedFrom: number,
  ): Promise<Grant | undefined> {
    const { node } = contender;
    if (node === undefined) return undefined;
    if (queue?.has(node.name) === false) return undefined;
    contender.blocker = queue?.blockerOf(node);
    if (contender.blocker !== undefined) return undefined;
    const token = contender.token ?? (await contender.fetchToken());
    if (token === undefined || contender.abandoned || session.ended) return undefined;
    contender.granted = true;
    this.#watchLater(contender);
    const { request, lost } = contender;
    return { request, fencingToken: token, countedFrom, session: session.tenure, lost: lost.signal };
  }

  #contenderOf({ acquisitionId }: AcquireRequest): Contender | undefined {
    return this.#sessions.live?.contenders.get(acquisitionId);
  }

  /** Deletes the node of an id that this session does not know: another one may have created it. */
  async #deleteUnknown({ acquisitionId, resource }: AcquireRequest): Promise<boolean> {
    return (
      (await this.#sessions.live?.deleteNodes(acquisitionId, this.#resourceNodes.pathOf(resource))) ?? false
    );
  }

  /** The status of a hold, known without a request: the session is probed, and the node is watched. */
  async #renewalStatus(grant: Grant): Promise<RenewalStatus> {
    const contender = this.#contenderOf(grant.request);
    if (contender === undefined) return lossOf(grant);
    try {
      if (!contender.isWatched) await contender.watchOwnNode();
    } catch (error) {
      return { status: 'unknown', error };
    }
    return contender.lost.signal.aborted ? lossOf(grant) : { status: 'held' };
  }

  #watchLater(contender: Contender): void {
    this.#unwatched.push(contender);
    this.#watchTimer ??= setTimeout(() => {
      this.#watchTimer = undefined;
      for (const granted of this.#unwatched.splice(0)) granted.watchOwnNode().catch(() => undefined);
    }, WATCH_AFTER_MS).unref();
  }
}

function lossOf({ lost, session }: Grant): RenewalStatus {
  const expired = session !== undefined && session.validUntil() === Number.NEGATIVE_INFINITY;
  const reported = lost?.reason as LossReason | undefined;
  return { status: 'lost', reason: reported ?? (expired ? 'session-lost' : 'force-released') };
}
