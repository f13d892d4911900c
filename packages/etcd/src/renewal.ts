import type { Call, Grant, LossReason, RenewItem, Standing } from '@locks/core/backend';
import type { IKeyValue } from 'etcd3';
import type { Acquisition, Hold } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { keysAt, termOf } from './answer.ts';
import { modifiedAt, read } from './conditions.ts';
import { decodeEntry, encodeAgain, type Entry } from './entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import { counts } from './granting.ts';
import type { Holdings } from './holdings.ts';
import type { Renewed } from './keep-alive.ts';
import type { Keys } from './keys.ts';
import type { Lease, Leases } from './leases.ts';
import { ChangedMeanwhileError, NoAnswerError } from './retryable.ts';

/** A server takes 128 operations in one transaction. */
const CHUNK = 100;

/** A keep-alive that is under way. */
interface Asked {
  readonly lease: Lease;
  readonly answer: Promise<Renewed | Error>;
}

/** Renewal of many leases: a keep-alive for each, on one stream, and one transaction that reads a hundred keys. */
export class Renewal {
  readonly #port: EtcdPort;
  readonly #leases: Leases;
  readonly #holdings: Holdings;
  readonly #acquisitions: Acquisitions;
  readonly #keys: Keys;

  constructor(port: EtcdPort, leases: Leases, holdings: Holdings, acquisitions: Acquisitions, keys: Keys) {
    this.#port = port;
    this.#leases = leases;
    this.#holdings = holdings;
    this.#acquisitions = acquisitions;
    this.#keys = keys;
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    const chunks: Promise<Standing[]>[] = [];
    for (let start = 0; start < items.length; start += CHUNK) {
      chunks.push(this.#renewChunk(items.slice(start, start + CHUNK), call));
    }
    return (await Promise.all(chunks)).flat();
  }

  async #renewChunk(items: readonly RenewItem[], call: Call): Promise<Standing[]> {
    const known = items.map(({ grant }) => this.#acquisitions.get(grant.request.acquisitionId));
    // Both are sent at once: what the two answers say together is as good as one after the other.
    const renewals = items.map(({ ttlMs }, index) => {
      const lease = known[index]?.hold?.lease;
      return lease !== undefined && isFor(lease, ttlMs) ? this.#ask(lease) : undefined;
    });
    const reads = items.map(({ grant: { request } }) =>
      read({ key: this.#keys.of(request.resource, request.acquisitionId) }),
    );
    const response = await this.#port.txn({ compare: [], success: reads, failure: [] }, call);
    return await Promise.all(
      items.map(async (item, index) => {
        const [kv] = keysAt(response, index);
        return await this.#standing(item, known[index], kv, renewals[index], termOf(response), call);
      }),
    );
  }

  async #standing(
    { grant, ttlMs }: RenewItem,
    acquisition: Acquisition | undefined,
    kv: IKeyValue | undefined,
    asked: Asked | undefined,
    raftTerm: number,
    call: Call,
  ): Promise<Standing> {
    const hold = acquisition?.hold;
    if (kv === undefined || (hold !== undefined && Number(kv.create_revision) !== hold.createRevision)) {
      return await this.#lost(grant, acquisition, call);
    }
    // Another client's grant: its key says what it hangs on.
    if (acquisition === undefined || hold === undefined)
      return await this.#judge(undefined, this.#ask(leaseAt(kv)), raftTerm);
    if (hold.movedTo?.id === kv.lease) this.#moved(acquisition, hold, hold.movedTo);
    const { lease } = hold;
    if (lease.id !== kv.lease || !isFor(lease, ttlMs)) {
      return await this.#move(acquisition, hold, decodeEntry(kv), ttlMs, call);
    }
    const standing = await this.#judge(hold, asked?.lease === lease ? asked : this.#ask(lease), raftTerm);
    // The lease is no more, and so the key; it was still there when it was read.
    return standing.status === 'lost' ? await this.#lost(grant, acquisition, call) : standing;
  }

  async #judge(hold: Hold | undefined, { lease, answer }: Asked, raftTerm: number): Promise<Standing> {
    const renewed = await answer;
    if (renewed instanceof Error) return { status: 'unknown', error: renewed };
    // What is said of a lease that the key was moved away from, is not said of the hold.
    if (hold !== undefined && hold.lease !== lease) return changed();
    if (!counts(renewed, raftTerm)) {
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

  /** Another ttl needs another lease, since a lease keeps the ttl that it was granted for. */
  async #move(
    acquisition: Acquisition,
    hold: Hold,
    own: Entry,
    ttlMs: number,
    call: Call,
  ): Promise<Standing> {
    const { key } = acquisition;
    const { lease: from } = hold;
    const lease = await this.#leases.grant(ttlMs, call);
    if (acquisition.ended) this.#leases.drop(lease);
    acquisition.assertWanted();
    hold.movedTo = lease;
    const put = { request_put: { key, value: encodeAgain(own, own.mode), lease: lease.id } };
    const was = acquisition.doubtful;
    acquisition.doubtful = true;
    const response = await this.#port.txn(
      { compare: [modifiedAt(key, own.modRevision)], success: [put], failure: [read({ key })] },
      call,
    );
    acquisition.doubtful = was;
    // An earlier sending of it may have been the one that did it.
    if (!response.succeeded && keysAt(response, 0)[0]?.lease !== lease.id) {
      this.#leases.drop(lease);
      return changed();
    }
    this.#leases.drop(from);
    // Another renewal, which read the key before this was answered, may have moved it on.
    if (hold.lease !== from && hold.lease !== lease) return changed();
    this.#moved(acquisition, hold, lease);
    lease.fresh = false;
    const validForMs = lease.ttlSeconds * 1_000;
    hold.endsAt = performance.now() + validForMs;
    return { status: 'held', validForMs };
  }

  #moved(acquisition: Acquisition, hold: Hold, lease: Lease): void {
    if (hold.movedTo === lease) delete hold.movedTo;
    hold.lease = lease;
    if (!acquisition.ended) acquisition.lease = lease;
  }

  #ask(lease: Lease): Asked {
    return { lease, answer: settled(this.#leases.renew(lease)) };
  }

  async #lost({ lost }: Grant, acquisition: Acquisition | undefined, call: Call): Promise<Standing> {
    if (acquisition === undefined) {
      // Its watch was quicker, and has found out why.
      const told = lost?.aborted ? (lost.reason as LossReason) : 'force-released';
      return { status: 'lost', reason: told };
    }
    const reason = await this.#holdings.reasonOf(acquisition, call).catch(() => 'force-released' as const);
    this.#holdings.lost(acquisition, reason);
    return { status: 'lost', reason };
  }
}

function settled(renewal: Promise<Renewed>): Promise<Renewed | Error> {
  return renewal.catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
}

function isFor({ wantedSeconds }: Lease, ttlMs: number): boolean {
  return wantedSeconds === Math.ceil(ttlMs / 1_000);
}

function changed(): Standing {
  return { status: 'unknown', error: new ChangedMeanwhileError('the hold changed while it was renewed') };
}

function leaseAt({ lease }: IKeyValue): Lease {
  return { id: lease, wantedSeconds: 0, ttlSeconds: 0, grantedFrom: 0, fresh: false, endsAt: 0 };
}
