import type {
  IKeyValue,
  IRangeResponse,
  IRequestOp,
  IResponseOp,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
} from 'etcd3';

/** What a test asks of a server, the real one and the simulated one alike. */
export interface ComparedServer {
  txn(request: ITxnRequest): Promise<ITxnResponse>;
  leaseGrant(seconds: number): Promise<{ readonly ID: string; readonly TTL: string }>;
  leaseRevoke(id: string): Promise<unknown>;
  timeToLive(id: string): Promise<{ readonly TTL: string; readonly grantedTTL: string }>;
  keepAlive(id: string): Promise<string>;
  watch(request: IWatchRequest): Promise<void>;
  /** Waits until watches have heard of what was written. */
  settle(ms: number): Promise<void>;
  compact(revision: number): Promise<void>;
}

/** A lease that no server has granted. */
const NO_SUCH_LEASE = '12345';

/** Gives leases the names of the test, in requests and in answers, since each server chooses its own. */
export class LeaseNames {
  readonly #ids = new Map<string, string>([['none', NO_SUCH_LEASE]]);
  readonly #names = new Map<string, string>([['0', '-']]);

  add(name: string, id: string): void {
    this.#ids.set(name, id);
    this.#names.set(id, name);
  }

  idOf(name: string): string {
    return this.#ids.get(name) ?? NO_SUCH_LEASE;
  }

  inRequest({ compare = [], success = [], failure = [] }: ITxnRequest): ITxnRequest {
    return {
      compare: compare.map((condition) =>
        condition.target === 'Lease'
          ? { ...condition, lease: this.idOf(String(condition.lease)) }
          : condition,
      ),
      success: success.map((operation) => this.#inOperation(operation)),
      failure: failure.map((operation) => this.#inOperation(operation)),
    };
  }

  #inOperation(operation: IRequestOp): IRequestOp {
    const { request_put: put, request_txn: nested } = operation;
    if (nested !== undefined) return { request_txn: this.inRequest(nested) };
    if (put?.lease === undefined) return operation;
    return { request_put: { ...put, lease: this.idOf(String(put.lease)) } };
  }

  /** An answer in a form that is equal where the servers have answered the same. */
  answer({ header, succeeded, responses }: ITxnResponse, isTop = true): unknown {
    return {
      ...(isTop && { revision: header.revision }),
      succeeded,
      responses: responses.map((response) => this.#response(response)),
    };
  }

  key({ key, value, create_revision: created, mod_revision: modified, version, lease }: IKeyValue): unknown {
    return [
      String(key),
      value.toString('latin1'),
      created,
      modified,
      version,
      this.#names.get(lease) ?? lease,
    ];
  }

  #response({
    response_range: range,
    response_put: put,
    response_delete_range: deletion,
    response_txn: nested,
  }: IResponseOp): unknown {
    if (range) return this.#range(range);
    if (nested) return this.answer(nested, false);
    if (deletion) return `deleted ${deletion.deleted}`;
    return put ? 'put' : 'nothing';
  }

  #range({ kvs, more, count }: IRangeResponse): unknown {
    return { kvs: kvs.map((kv) => this.key(kv)), more, count };
  }
}

/** What the watches of a stream were told, watch by watch: which is told first is the chance of the server. */
export class Heard {
  readonly #names: LeaseNames;
  readonly #byWatch = new Map<string, unknown[]>();

  constructor(names: LeaseNames) {
    this.#names = names;
  }

  add({ watch_id: id, created, canceled, compact_revision: compacted, events }: IWatchResponse): void {
    const heard = this.#byWatch.get(id) ?? [];
    this.#byWatch.set(id, heard);
    if (created) heard.push('created');
    if (canceled) heard.push(`cancelled, compacted ${compacted}`);
    for (const { type, kv, prev_kv: before } of events)
      heard.push([type, this.#names.key(kv), before ? this.#names.key(before) : undefined]);
  }

  get all(): unknown {
    return Object.fromEntries(this.#byWatch);
  }

  get count(): number {
    return [...this.#byWatch.values()].flat().length;
  }
}
