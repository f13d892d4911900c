import { Buffer } from 'node:buffer';
import type {
  ICompare,
  IDeleteRangeRequest,
  IPutRequest,
  IRangeRequest,
  IRangeResponse,
  IRequestOp,
  IResponseOp,
  ITxnRequest,
  ITxnResponse,
} from 'etcd3';
import { EtcdLeaseInvalidError, EtcdRefusal } from './etcd-failures.ts';
import {
  keyValueOf,
  NO_LEASE,
  spanOf,
  type StoredKey,
  textOf,
  type VersionedKeys,
} from './versioned-keys.ts';

type Header = ITxnResponse['header'];
/** Responses have members for what was not asked, too; nobody reads those. */
type Sent<T> = { -readonly [Name in keyof T]?: unknown };

/** A server accepts so many comparisons, and operations in a branch, of one transaction. */
const MOST_OPERATIONS = 128;
const NO_KEY: StoredKey = {
  key: '',
  value: Buffer.alloc(0),
  createRevision: 0,
  modRevision: 0,
  version: 0,
  lease: NO_LEASE,
};

/** The branches that a transaction takes. All conditions are decided before anything is written, those of nested ones too. */
interface Path {
  readonly succeeded: boolean;
  readonly steps: readonly (IRequestOp | Path)[];
}

export interface TransactionServer {
  readonly keys: VersionedKeys;
  header(): Header;
  hasLease(id: string): boolean;
  /** A key hangs on another lease now; `0`: on none. */
  attach(key: string, from: string, to: string): void;
}

/** Carries out transactions and reads on the keys of a server. */
export class Transactions {
  readonly #server: TransactionServer;
  readonly #keys: VersionedKeys;

  constructor(server: TransactionServer) {
    this.#server = server;
    this.#keys = server.keys;
  }

  /** The caller commits. */
  execute(request: ITxnRequest): ITxnResponse {
    checkSize(request);
    const path = this.#pathOf(request);
    this.#checkPuts(path);
    return this.#run(path);
  }

  range(request: IRangeRequest): IRangeResponse {
    const {
      sort_target: target = 'Key',
      sort_order: order = 'None',
      count_only: countOnly = false,
    } = request;
    const limit = Number(request.limit ?? 0) || Infinity;
    const all = this.#keys.within(spanOf(request));
    // Without an order a server reads one key more than it is asked for, and sorts those.
    const read = order === 'None' ? all.slice(0, limit + 1) : all;
    const sorted =
      order === 'None' && target === 'Key'
        ? read
        : read.toSorted(orderBy(String(target), order === 'Descend'));
    const shown = sorted.slice(0, limit);
    const response: Sent<IRangeResponse> = {
      header: this.#header(),
      kvs: countOnly ? [] : shown.map(keyValueOf),
      more: shown.length < all.length && !countOnly,
      count: String(all.length),
    };
    return response as IRangeResponse;
  }

  #pathOf({ compare = [], success = [], failure = [] }: ITxnRequest): Path {
    const succeeded = compare.every((condition) => this.#holds(condition));
    const steps = (succeeded ? success : failure).map((step) =>
      step.request_txn === undefined ? step : this.#pathOf(step.request_txn),
    );
    return { succeeded, steps };
  }

  /** Of a range the condition must hold for every key; values of keys that are not there fit no condition. */
  #holds(condition: ICompare): boolean {
    const found = this.#keys.within(spanOf(condition));
    if (found.length === 0) return condition.target !== 'Value' && isTrueOf(condition, NO_KEY);
    return found.every((key) => isTrueOf(condition, key));
  }

  #checkPuts({ steps }: Path): void {
    for (const step of steps) {
      if ('steps' in step) this.#checkPuts(step);
      else if (step.request_put !== undefined) this.#checkPut(step.request_put);
    }
  }

  #checkPut({ key, lease, ignore_value: keepsValue, ignore_lease: keepsLease }: IPutRequest): void {
    if ((keepsValue || keepsLease) && this.#keys.get(textOf(key)) === undefined)
      throw new EtcdRefusal('etcdserver: key not found');
    const wanted = String(lease ?? NO_LEASE);
    if (wanted !== NO_LEASE && !this.#server.hasLease(wanted))
      throw new EtcdLeaseInvalidError('etcdserver: requested lease not found');
  }

  #run({ succeeded, steps }: Path): ITxnResponse {
    const responses = steps.map((step) => this.#runStep(step) as IResponseOp);
    const response: Sent<ITxnResponse> = { header: this.#header(), succeeded, responses };
    return response as ITxnResponse;
  }

  #runStep(step: IRequestOp | Path): Sent<IResponseOp> {
    if ('steps' in step) return { response_txn: this.#run(step) };
    if (step.request_range !== undefined) return { response_range: this.range(step.request_range) };
    if (step.request_put !== undefined) return { response_put: this.#put(step.request_put) };
    if (step.request_delete_range !== undefined)
      return { response_delete_range: this.#delete(step.request_delete_range) };
    throw new EtcdRefusal('etcdserver: an operation without a request');
  }

  #put({ key: bytes, value, lease, ignore_value: keepsValue, ignore_lease: keepsLease }: IPutRequest) {
    const key = textOf(bytes);
    const before = this.#keys.get(key);
    const { lease: from = NO_LEASE } = before ?? {};
    const to = keepsLease ? from : String(lease ?? NO_LEASE);
    this.#keys.put(key, keepsValue ? (before as StoredKey).value : Buffer.from(value ?? ''), to);
    this.#server.attach(key, from, to);
    return { header: this.#header() };
  }

  #delete(request: IDeleteRangeRequest) {
    const found = this.#keys.within(spanOf(request));
    for (const { key, lease } of found) {
      this.#keys.delete(key);
      this.#server.attach(key, lease, NO_LEASE);
    }
    return { header: this.#header(), deleted: String(found.length) };
  }

  #header(): Header {
    return this.#server.header();
  }
}

function checkSize({ compare = [], success = [], failure = [] }: ITxnRequest): void {
  if ([compare, success, failure].some(({ length }) => length > MOST_OPERATIONS))
    throw new EtcdRefusal('etcdserver: too many operations in txn request');
  for (const { request_txn: nested } of [...success, ...failure]) if (nested !== undefined) checkSize(nested);
}

function isTrueOf(condition: ICompare, key: StoredKey): boolean {
  const order = orderOf(condition, key);
  switch (condition.result ?? 'Equal') {
    case 'Equal':
      return order === 0;
    case 'NotEqual':
      return order !== 0;
    case 'Greater':
      return order > 0;
    case 'Less':
      return order < 0;
    default:
      throw new EtcdRefusal(`an unknown comparison: ${String(condition.result)}`);
  }
}

/** How a key compares with what a condition names. */
function orderOf(condition: ICompare, key: StoredKey): number {
  switch (condition.target) {
    case 'Create':
      return key.createRevision - Number(condition.create_revision ?? 0);
    case 'Mod':
      return key.modRevision - Number(condition.mod_revision ?? 0);
    case 'Version':
      return key.version - Number(condition.version ?? 0);
    case 'Value':
      return Buffer.compare(key.value, Buffer.from(condition.value ?? ''));
    case 'Lease': {
      const [own, wanted] = [BigInt(key.lease), BigInt(condition.lease ?? 0)];
      return own === wanted ? 0 : own < wanted ? -1 : 1;
    }
    default:
      throw new EtcdRefusal(`an unknown target: ${String(condition.target)}`);
  }
}

function orderBy(target: string, descending: boolean): (a: StoredKey, b: StoredKey) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => sign * compareBy(target, a, b);
}

function compareBy(target: string, a: StoredKey, b: StoredKey): number {
  switch (target) {
    case 'Create':
      return a.createRevision - b.createRevision;
    case 'Mod':
      return a.modRevision - b.modRevision;
    case 'Version':
      return a.version - b.version;
    case 'Value':
      return Buffer.compare(a.value, b.value);
    default:
      return a.key < b.key ? -1 : 1;
  }
}
