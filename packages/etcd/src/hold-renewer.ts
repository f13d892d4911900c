import { setTimeout as delay } from 'node:timers/promises';
import {
  type AcquireRequest,
  type Call,
  type Grant,
  type LossReason,
  NoAnswerError,
  type RenewItem,
  type RenewalStatus,
} from '@locks/core/backend';
import type { IKeyValue } from 'etcd3';
import type { Acquisition, EtcdHold } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { keysAt, termOf } from './txn-responses.ts';
import { modifiedAt, read } from './conditions.ts';
import { decodeEntry, reencode, type EtcdEntry } from './etcd-entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import { isFromCurrentLeader } from './lease-validity.ts';
import type { Holdings } from './holdings.ts';
import type { KeepAliveReply } from './keep-alive-stream.ts';
import type { Keys } from './keys.ts';
import { type EtcdLease, foreignLease, type LeasePool } from './lease-pool.ts';
import { ChangedMeanwhileError } from './etcd-errors.ts';
import { isAheadOfQueue, markSteal } from './txn-branches.ts';

/** The most reads of one transaction: a server accepts 128 operations. */
const CHUNK = 100;
/** The tries of a renewal that finds its hold changed each time: by other renewals, a new limit, a downgrade. */
const TRIES = 20;
const PAUSE_MS = 3;

/** A keep-alive that is under way for a lease. */
interface PendingRenewal {
  readonly lease: EtcdLease;
  readonly answer: Promise<KeepAliveReply | Error>;
}

/** Renews many holds: one keep-alive for each lease, and one transaction that reads up to a hundred keys. */
export class HoldRenewer {
  readonly #port: EtcdPort;
  readonly #leases: LeasePool;
  readonly #holdings: Holdings;
  readonly #acquisitions: Acquisitions;
  readonly #keys: Keys;
  /** The lease that this backend gave to a hold of another instance, by the grant that it renews by. */
  readonly #leasesForOthers = new WeakMap<Grant, EtcdLease>();

  constructor(port: EtcdPort, leases: LeasePool, holdings: Holdings, acquisitions: Acquisitions, keys: Keys) {
    this.#port = port;
    this.#leases = leases;
    this.#holdings = holdings;
    this.#acquisitions = acquisitions;
    this.#keys = keys;
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const chunks: Promise<RenewalStatus[]>[] = [];
    for (let start = 0; start < items.length; start += CHUNK) {
      chunks.push(this.#renewChunk(items.slice(start, start + CHUNK), call));
    }
    return (await Promise.all(chunks)).flat();
  }

  async #renewChunk(items: readonly RenewItem[], call: Call): Promise<RenewalStatus[]> {
    const known = items.map(({ grant }) => this.#acquisitions.get(grant.request.acquisitionId));
    // The keep-alives and the reads are sent at once: together their answers prove as much as one after the other.
    const renewals = items.map(({ ttlMs }, index) => {
      const lease = known[index]?.hold?.lease;
      return lease !== undefined && isFor(lease, ttlMs) ? this.#ask(lease) : undefined;
    });
    const reads = items.map(({ grant: { request } }) =>
      read({ key: this.#keys.of(request.resource, request.acquisitionId) }),
    );
    const response = await this.#port.run(reads, call);
    return await Promise.all(
      items.map(async (item, index) => {
        const [kv] = keysAt(response, index);
        return await this.#renewalStatus(item, known[index], kv, renewals[index], termOf(response), call);
      }),
    );
  }

  async #renewalStatus(
    { grant, ttlMs }: RenewItem,
    acquisition: Acquisition | undefined,
    kv: IKeyValue | undefined,
    asked: PendingRenewal | undefined,
    raftTerm: number,
    call: Call,
  ): Promise<RenewalStatus> {
    const hold = acquisition?.hold;
    // A later grant of the same acquisition lives on, and this one ended (docs/spec.md §1.5).
    if (kv !== undefined && ![hold?.token, decodeEntry(kv).token].includes(grant.fencingToken))
      return { status: 'lost', reason: 'taken-over' };
    if (kv === undefined || (hold !== undefined && Number(kv.create_revision) !== hold.createRevision)) {
      return await this.#lost(grant, acquisition, call);
    }
    if (acquisition === undefined || hold === undefined)
      return await this.#renewForAnother({ grant, ttlMs }, kv, raftTerm, call);
    if (hold.movedTo?.id === kv.lease) this.#moved(acquisition, hold, hold.movedTo);
    const { lease } = hold;
    const renewalStatus =
      lease.id === kv.lease && isFor(lease, ttlMs)
        ? await this.#judge(hold, asked?.lease === lease ? asked : this.#ask(lease), raftTerm)
        : await this.#move(acquisition, hold, decodeEntry(kv), ttlMs, call);
    if (renewalStatus === undefined) return await this.#again({ grant, ttlMs }, acquisition, lease, call);
    // The lease ended after the key was read, and the key ended with it.
    return renewalStatus.status === 'lost' ? await this.#lost(grant, acquisition, call) : renewalStatus;
  }

  /** Repeats a renewal that found the hold changed by a concurrent renewal with another ttl. */
  async #again(
    { grant, ttlMs }: RenewItem,
    acquisition: Acquisition,
    before: EtcdLease,
    call: Call,
  ): Promise<RenewalStatus> {
    const { key, hold } = acquisition;
    for (let tries = 0; tries < TRIES; tries += 1) {
      // A random pause, so that concurrent renewals do not collide again and again.
      await delay(Math.random() * tries * PAUSE_MS);
      const response = await this.#port.run([read({ key })], call);
      const [kv] = keysAt(response, 0);
      // A hold that was released meanwhile must not be renewed (docs/spec.md §4.1).
      acquisition.assertWanted();
      if (hold === undefined || Number(kv?.create_revision) !== hold.createRevision || kv === undefined)
        return await this.#lost(grant, acquisition, call);
      if (hold.movedTo?.id === kv.lease) this.#moved(acquisition, hold, hold.movedTo);
      const { lease } = hold;
      // The store may run concurrent renewals in any order: the lease that another one moved the key to is as good.
      const stands = lease.id === kv.lease && (isFor(lease, ttlMs) || lease !== before);
      const renewalStatus = stands
        ? await this.#judge(hold, this.#ask(lease), termOf(response))
        : await this.#move(acquisition, hold, decodeEntry(kv), ttlMs, call);
      if (renewalStatus?.status === 'lost') return await this.#lost(grant, acquisition, call);
      if (renewalStatus !== undefined) return countedFor(ttlMs, renewalStatus);
    }
    const error = new ChangedMeanwhileError('the hold changed each time it was to be renewed');
    return { status: 'unknown', error };
  }

  /** Returns `undefined` if the hold was moved to another lease meanwhile. */
  async #judge(
    hold: EtcdHold | undefined,
    { lease, answer }: PendingRenewal,
    raftTerm: number,
  ): Promise<RenewalStatus | undefined> {
    const renewed = await answer;
    if (renewed instanceof Error) return { status: 'unknown', error: renewed };
    // The answer for a lease that the key has left says nothing about the hold.
    if (hold !== undefined && hold.lease !== lease) return undefined;
    if (!isFromCurrentLeader(renewed, raftTerm)) {
      return {
        status: 'unknown',
        error: new NoAnswerError('the keep-alive was answered by an earlier leader'),
      };
    }
    if (renewed.ttlSeconds === 0) return { status: 'lost', reason: 'force-released' };
    const validForMs = renewed.ttlSeconds * 1_000;
    if (hold !== undefined) hold.endsAt = performance.now() + validForMs;
    return { status: 'held', validForMs };
  }

  /**
   * Renews a hold that another instance was granted (docs/spec.md §4.8): the key names its lease, and a keep-alive tells the ttl of that.
   * The key may leave the lease, which ends by itself then: its owner uses it again.
   */
  async #renewForAnother(
    { grant, ttlMs }: RenewItem,
    kv: IKeyValue,
    raftTerm: number,
    call: Call,
  ): Promise<RenewalStatus> {
    const given = this.#leasesForOthers.get(grant);
    const isGiven = given?.id === kv.lease;
    const from = isGiven ? given : foreignLease(kv.lease, 0);
    const status = (await this.#judge(undefined, this.#ask(from), raftTerm)) as RenewalStatus;
    const hasItsTtl =
      status.status === 'held' &&
      (isFor(from, ttlMs) || status.validForMs === Math.ceil(ttlMs / 1_000) * 1_000);
    if (hasItsTtl || status.status === 'unknown') return status;
    if (status.status === 'held') {
      const lease = await this.#leases.grant(ttlMs, call);
      if (await this.#attach(decodeEntry(kv), grant.request, lease, call)) {
        if (isGiven) this.#leases.drop(from);
        this.#leasesForOthers.set(grant, lease);
        return { status: 'held', validForMs: lease.ttlSeconds * 1_000 };
      }
    }
    // Also where the lease was gone: the other instance may have moved the key to another one after it was read.
    return { status: 'unknown', error: new ChangedMeanwhileError('the hold changed while it was renewed') };
  }

  /** Moves the key to a lease with another ttl, since a lease keeps its ttl. Returns `undefined` if the hold had changed. */
  async #move(
    acquisition: Acquisition,
    hold: EtcdHold,
    own: EtcdEntry,
    ttlMs: number,
    call: Call,
  ): Promise<RenewalStatus | undefined> {
    const { lease: from } = hold;
    const lease = await this.#leases.grant(ttlMs, call);
    if (acquisition.ended) this.#leases.drop(lease);
    acquisition.assertWanted();
    hold.movedTo = lease;
    const was = acquisition.hasUnansweredWrite;
    acquisition.hasUnansweredWrite = true;
    const isAttached = await this.#attach(own, acquisition.request, lease, call);
    acquisition.hasUnansweredWrite = was;
    if (!isAttached) return undefined;
    this.#leases.drop(from);
    // Another renewal that read the key before this answer may have moved the key on.
    if (hold.lease !== from && hold.lease !== lease) return undefined;
    this.#moved(acquisition, hold, lease);
    const validForMs = lease.ttlSeconds * 1_000;
    hold.endsAt = performance.now() + validForMs;
    return { status: 'held', validForMs };
  }

  /** Attaches the key of a hold to a lease, with the mark of its steal; drops the lease where the hold changed since it was read. */
  async #attach(own: EtcdEntry, request: AcquireRequest, lease: EtcdLease, call: Call): Promise<boolean> {
    const { key, mode, modRevision } = own;
    const put = { request_put: { key, value: reencode(own, mode), lease: lease.id } };
    const mark = isAheadOfQueue(request) ? [markSteal(this.#keys.stealMark(request.resource), lease)] : [];
    const compare = [modifiedAt(key, modRevision)];
    const failure = [read({ key })];
    const response = await this.#port.txn({ compare, success: [put, ...mark], failure }, call);
    // An earlier sending of this transaction may have moved the key.
    const isAttached = response.succeeded || keysAt(response, 0)[0]?.lease === lease.id;
    if (!isAttached) this.#leases.drop(lease);
    return isAttached;
  }

  #moved(acquisition: Acquisition, hold: EtcdHold, lease: EtcdLease): void {
    if (hold.movedTo === lease) hold.movedTo = undefined;
    hold.lease = lease;
    if (!acquisition.ended) acquisition.lease = lease;
  }

  #ask(lease: EtcdLease): PendingRenewal {
    return { lease, answer: orError(this.#leases.renew(lease)) };
  }

  async #lost({ lost }: Grant, acquisition: Acquisition | undefined, call: Call): Promise<RenewalStatus> {
    if (acquisition === undefined) {
      // The watch of the hold may have found the reason already.
      const reported = lost?.aborted ? (lost.reason as LossReason) : 'force-released';
      return { status: 'lost', reason: reported };
    }
    const reason = await this.#holdings.reasonOf(acquisition, call).catch(() => 'force-released' as const);
    this.#holdings.lost(acquisition, reason);
    return { status: 'lost', reason };
  }
}

function orError(renewal: Promise<KeepAliveReply>): Promise<KeepAliveReply | Error> {
  return renewal.catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
}

/** A renewal counts for no more than it asked for, also where the lease of a longer one stands in the store (docs/spec.md §1.7). */
function countedFor(ttlMs: number, status: RenewalStatus): RenewalStatus {
  if (status.status !== 'held' || status.validForMs === undefined) return status;
  return { ...status, validForMs: Math.min(status.validForMs, ttlMs) };
}

function isFor({ wantedSeconds }: EtcdLease, ttlMs: number): boolean {
  return wantedSeconds === Math.ceil(ttlMs / 1_000);
}
