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
      return lease?.wantedSeconds === Math.ceil(ttlMs / 1_000)
        ? settled(this.#leases.renew(lease))
        : undefined;
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
    renewal: Promise<Renewed | Error> | undefined,
    raftTerm: number,
    call: Call,
  ): Promise<Standing> {
    const hold = acquisition?.hold;
    if (kv === undefined || (hold !== undefined && Number(kv.create_revision) !== hold.createRevision)) {
      return await this.#lost(grant, acquisition, call);
    }
    // Another client's grant: its key says what it hangs on.
    if (hold === undefined)
      return await this.#judge(undefined, settled(this.#leases.renew(leaseAt(kv))), raftTerm);
    if (hold.movedTo?.id === kv.lease) {
      hold.lease = hold.movedTo;
      if (acquisition !== undefined) acquisition.lease = hold.lease;
    }
    if (hold.lease.id !== kv.lease || renewal === undefined) {
      return await this.#move(acquisition as Acquisition, hold, decodeEntry(kv), ttlMs, call);
    }
    const standing = await this.#judge(hold, renewal, raftTerm);
    // The lease is no more, and so the key; it was still there when it was read.
    return standing.status === 'lost' ? await this.#lost(grant, acquisition, call) : standing;
  }

  async #judge(
    hold: Hold | undefined,
    renewal: Promise<Renewed | Error>,
    raftTerm: number,
  ): Promise<Standing> {
    const renewed = await renewal;
    if (renewed instanceof Error) return { status: 'unknown', error: renewed };
    if (renewed.ttlSeconds === 0) return { status: 'lost', reason: 'force-released' };
    if (!counts(renewed, raftTerm)) {
      return {
        status: 'unknown',
        error: new NoAnswerError('the keep-alive was answered by an earlier leader'),
      };
    }
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
    const lease = await this.#leases.grant(ttlMs, call);
    if (acquisition.ended) this.#leases.drop(lease);
    acquisition.assertWanted();
    hold.movedTo = lease;
    const put = { request_put: { key, value: encodeAgain(own, own.mode), lease: lease.id } };
    const was = acquisition.doubtful;
    acquisition.doubtful = true;
    const { succeeded } = await this.#port.txn(
      { compare: [modifiedAt(key, own.modRevision)], success: [put], failure: [] },
      call,
    );
    acquisition.doubtful = was;
    if (!succeeded) {
      this.#leases.drop(lease);
      return { status: 'unknown', error: new ChangedMeanwhileError('the hold changed while it was renewed') };
    }
    this.#leases.drop(hold.lease);
    delete hold.movedTo;
    hold.lease = lease;
    lease.fresh = false;
    if (!acquisition.ended) acquisition.lease = lease;
    const validForMs = lease.ttlSeconds * 1_000;
    hold.endsAt = performance.now() + validForMs;
    return { status: 'held', validForMs };
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

function leaseAt({ lease }: IKeyValue): Lease {
  return { id: lease, wantedSeconds: 0, ttlSeconds: 0, grantedFrom: 0, fresh: false, endsAt: 0 };
}
