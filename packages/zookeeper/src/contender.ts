import type { LossReason } from '@locks/core';
import { type AcquireRequest, holdsAlone } from '@locks/core/backend';
import { hasCode } from './client-port.ts';
import type { ZookeeperQueue } from './zookeeper-queue.ts';
import { createLockNode, tokenBetween } from './lock-node-creation.ts';
import { type LockNode, modeOf, parseLockNode, sharedNameOf } from './node-names.ts';
import type { ResourceNodes } from './resource-nodes.ts';
import { decodeNodeData, encodeNodeData } from './lock-node-data.ts';
import { replaceLockNode } from './replace-lock-node.ts';
import { expired, type SessionMember, type ZookeeperSession } from './zookeeper-session.ts';

/** The number of times that an acquisition may find the resource's node deleted before it fails. */
const TRIES = 10;

/** One acquisition that holds or waits: its node, and the known state of that node. */
export class Contender implements SessionMember {
  readonly request: AcquireRequest;
  readonly parent: string;
  /** Aborts, with the reason, when the store reports that the hold is lost. */
  readonly lost = new AbortController();
  granted = false;
  /** Set once the acquisition is abandoned or released: requests that are still under way must leave no node. */
  abandoned = false;
  /** The node that this contender waits for. */
  blocker: LockNode | undefined;
  readonly #session: ZookeeperSession<Contender>;
  readonly #resourceNodes: ResourceNodes;
  #node: LockNode | undefined;
  #token: bigint | undefined;
  /** Whether a create got no answer: there may be an unknown node. */
  #uncertain = false;
  /** The shared node that a downgrade without an answer may have made: if it `may be the hold`, it is where the known node is missing. */
  #share: 'none' | 'may be left' | 'may be the hold' = 'none';
  #entering: Promise<ZookeeperQueue> | undefined;
  #leaving: Promise<boolean> | undefined;
  #leaveCount = 0;
  /** The release of an exclusive hold, and whether it deleted the hold's node. */
  #endOfHold: { readonly name: string; readonly isDeleted: Promise<boolean> } | undefined;
  #isWatched = false;
  #downgrading = false;

  constructor(request: AcquireRequest, session: ZookeeperSession<Contender>, resourceNodes: ResourceNodes) {
    this.request = request;
    this.#session = session;
    this.#resourceNodes = resourceNodes;
    this.parent = resourceNodes.enter(request.resource);
  }

  get node(): LockNode | undefined {
    return this.#node;
  }

  get token(): bigint | undefined {
    return this.#token;
  }

  /** Whether the own node is watched, so that its deletion will be reported. */
  get isWatched(): boolean {
    return this.#isWatched;
  }

  /** Whether the delete of the own node waits for its turn, or is under way. */
  get isLeaving(): boolean {
    return this.#leaving !== undefined;
  }

  /** Whether an earlier release was sent and got no answer. */
  get wasLeftBefore(): boolean {
    return this.#leaveCount > 1;
  }

  get path(): string {
    return `${this.parent}/${this.#node?.name}`;
  }

  /** Reads the queue, and enters it if need be. `undefined` if this contender held and an administrator deleted its node. */
  async readQueue(): Promise<ZookeeperQueue | undefined> {
    if (this.#entering === undefined && this.#node !== undefined) {
      // A repeated attempt syncs first: a hold that was ended by force may still exist on a server that lags behind.
      const sync = this.granted ? this.#session.barrier() : undefined;
      const [queue] = await Promise.all([this.#session.queue(this.parent), sync]);
      if (queue.has(this.#node.name)) return queue;
      if (this.granted) {
        this.lose('force-released');
        return undefined;
      }
      // A waiter whose node is gone queues again.
      this.#forget();
    }
    this.#entering ??= (this.#uncertain ? this.#findOrEnter() : this.#enter()).finally(() => {
      this.#entering = undefined;
    });
    return await this.#entering;
  }

  /** Reads the token if it is not known: the id of the transaction that created the node. */
  async fetchToken(): Promise<bigint | undefined> {
    if (this.#token !== undefined) return this.#token;
    const content = await this.#session.read(this.path);
    if (content === undefined) this.#forget();
    else this.#token ??= decodeNodeData(content).token;
    return this.#token;
  }

  /** Watches the own node, so that a deletion by an administrator is reported within one message (docs/spec.md §8.3). */
  async watchOwnNode(): Promise<void> {
    if (this.#isWatched || this.abandoned || this.lost.signal.aborted) return;
    this.#isWatched = true;
    const { path } = this;
    try {
      const content = await this.#session.watches.add(path, () => {
        this.#isWatched = false;
        if (path === this.path && !this.#downgrading) this.watchOwnNode().catch(() => undefined);
      });
      if (content !== undefined || path !== this.path) return;
      this.#isWatched = false;
      await this.#missing(path);
    } catch (error) {
      this.#isWatched = false;
      throw error;
    }
  }

  /** Handles a missing node: somebody else deleted it, or a downgrade whose replies were lost. */
  async #missing(path: string): Promise<void> {
    const shared = this.#share === 'may be the hold' ? await this.#findShared() : undefined;
    if (path !== this.path || this.#downgrading || this.abandoned) return;
    if (shared === undefined) return await this.#loseForced();
    this.#becomeShared(shared);
    await this.watchOwnNode();
  }

  /** Somebody else deleted the node: what a downgrade has made must not bring the hold back. */
  async #loseForced(): Promise<void> {
    this.lose('force-released');
    if (this.#share !== 'none') await this.#session.deleteNodes(this.request.acquisitionId, this.parent);
  }

  async #findShared(): Promise<LockNode | undefined> {
    const { nodes } = await this.#session.queue(this.parent);
    return nodes.find(({ name }) => this.#node !== undefined && name === sharedNameOf(this.#node));
  }

  #becomeShared(node: LockNode): void {
    this.#node = node;
    this.#share = 'none';
    this.#isWatched = false;
  }

  /** Replaces the node by a shared one with the same sequence number (docs/spec.md §15.4). */
  async downgrade(): Promise<boolean> {
    const node = this.#node;
    if (node === undefined || this.lost.signal.aborted) return false;
    if (node.kind === 's') return true;
    const name = sharedNameOf(node);
    const mayBeDone = this.#share === 'may be the hold';
    if (!mayBeDone) this.#share = 'may be left';
    this.#downgrading = true;
    try {
      const isReplaced = await replaceLockNode(this.#session, {
        exclusive: this.path,
        shared: `${this.parent}/${name}`,
        data: encodeNodeData({ label: this.request.label, token: this.#token }),
        mayBeDone,
        isDone: () => (this.#share = 'may be the hold'),
      });
      if (!isReplaced) {
        await this.#loseForced();
        return false;
      }
      this.#becomeShared({ ...node, name, kind: 's' });
    } finally {
      this.#downgrading = false;
    }
    await this.watchOwnNode();
    return !this.lost.signal.aborted;
  }

  /**
   * Deletes the node at the end of a hold or wait; `false` if it was gone. The session repeats a failed delete. A delete that
   * is under way is not sent again: the requests of a connection are answered in their order, or all of them fail.
   */
  leave(): Promise<boolean> {
    this.abandoned = true;
    return (this.#leaving ??= this.#leave().finally(() => (this.#leaving = undefined)));
  }

  async #leave(): Promise<boolean> {
    this.#leaveCount += 1;
    const { acquisitionId } = this.request;
    if (this.#session.ended) {
      this.gone();
      return false;
    }
    this.#session.pendingDeletes.set(acquisitionId, this.parent);
    await this.#entering?.catch(() => undefined);
    this.#session.pendingDeletes.set(acquisitionId, this.parent);
    const node = this.#node;
    const isUnclear = (): boolean => this.#node === undefined || this.#uncertain || this.#share !== 'none';
    const removing = this.#session.limited(() =>
      isUnclear() ? this.#session.deleteNodes(acquisitionId, this.parent) : this.#session.remove(this.path),
    );
    if (node !== undefined && holdsAlone(modeOf(node)) && this.granted && !isUnclear()) {
      this.#endOfHold = { name: node.name, isDeleted: removing.catch(() => false) };
    }
    const removed = await removing;
    this.#session.pendingDeletes.delete(acquisitionId);
    this.gone();
    return removed;
  }

  /** Whether this contender held alone with the node of this name, and its release deleted the node: nobody was ahead of it. */
  async hasEndedHold(name: string): Promise<boolean> {
    return this.#endOfHold?.name === name && (await this.#endOfHold.isDeleted);
  }

  /** Reads whether the own node is still there: an administrator may have deleted it. */
  async isQueued(): Promise<boolean> {
    return (await this.#session.read(this.path)) !== undefined;
  }

  lose(reason: LossReason): void {
    if (this.granted && !this.abandoned) this.lost.abort(reason);
    this.gone();
  }

  /** Forgets this contender after its node is gone. */
  gone(): void {
    const { acquisitionId } = this.request;
    if (this.#session.contenders.get(acquisitionId) !== this) return;
    this.#session.contenders.delete(acquisitionId);
    this.#resourceNodes.leave(this.parent);
  }

  async #enter(): Promise<ZookeeperQueue> {
    for (let tries = 1; ; tries += 1) {
      if (this.abandoned) throw expired();
      const sentAt = this.#session.now();
      const isParentMade = this.#resourceNodes.isMade(this.parent);
      const answers = await createLockNode(this.#session, this.parent, this.request, isParentMade);
      const [madeParent, before, made, listed] = answers;
      if (made.status === 'fulfilled') {
        this.#session.proven(sentAt);
        this.#resourceNodes.made(this.parent);
        this.#node = parseLockNode(made.value.slice(this.parent.length + 1));
        if (listed.status === 'rejected') throw listed.reason;
        const { list, queue } = listed.value;
        this.#token = before.status === 'fulfilled' ? tokenBetween(before.value, list) : undefined;
        return queue;
      }
      // After a lost reply the next attempt finds out by the name whether there is a node (docs/spec.md §2.2).
      this.#uncertain = hasCode(made.reason, 'CONNECTION_LOSS', 'SESSION_EXPIRED');
      if (!hasCode(made.reason, 'NO_NODE') || tries === TRIES) throw made.reason;
      this.#resourceNodes.unmade(this.parent);
      const refusal: unknown = madeParent.status === 'rejected' ? madeParent.reason : undefined;
      // The parent is missing because this client may not create it.
      if (hasCode(refusal, 'NO_AUTH')) throw refusal;
      if (hasCode(refusal, 'NO_NODE')) await this.#resourceNodes.makeRoot(this.#session);
    }
  }

  /** Adopts, after a lost reply, the node with this acquisition's id if this very session created it, or enters the queue. */
  async #findOrEnter(): Promise<ZookeeperQueue> {
    const { acquisitionId } = this.request;
    // The barrier comes after an earlier create that is still under way.
    const [, queue] = await Promise.all([this.#session.barrier(), this.#session.queue(this.parent)]);
    const [found, ...more] = queue.nodesOf(acquisitionId);
    for (const node of found === undefined || (await this.#isOurs(found)) ? more : [found, ...more])
      await this.#session.remove(`${this.parent}/${node.name}`);
    this.#uncertain = false;
    if (this.#node === undefined) return await this.#enter();
    return await this.#session.queue(this.parent);
  }

  async #isOurs(node: LockNode): Promise<boolean> {
    const content = await this.#session.read(`${this.parent}/${node.name}`);
    // The node of an earlier session is about to vanish (CURATOR-498).
    if (content?.owner !== this.#session.id) return false;
    this.#node = node;
    this.#token = decodeNodeData(content).token;
    return true;
  }

  #forget(): void {
    this.#node = undefined;
    this.#token = undefined;
    this.blocker = undefined;
  }
}
