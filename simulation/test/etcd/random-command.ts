import { Buffer } from 'node:buffer';
import type { ICompare, IRangeRequest, IRequestOp, ITxnRequest } from 'etcd3';
import type { SeededRandom } from '../../src/kernel/seeded-random.ts';

const KEYS = ['a', 'a/1', 'a/2', 'b', 'b/1', 'c'] as const;
const VALUES = ['', 're', 'rs', 'rx', 'p01', '\u00ff'];
const RANGES: readonly (readonly [string, string])[] = [
  ['a', 'b'],
  ['a/', 'a0'],
  ['b/', 'b0'],
  ['a', '\0'],
  ['x', 'y'],
];
const ORDERS = ['None', 'Ascend', 'Descend'] as const;
/** Others may have keys of equal values or versions, and a server sorts those in no order that it promises. */
const TARGETS = ['Key', 'Mod'] as const;
const RESULTS = ['Equal', 'Greater', 'Less', 'NotEqual'] as const;

/** Chooses transactions over few keys, by what a server has answered. */
export class RandomCommands {
  readonly #random: SeededRandom;
  /** The names of leases; one was never granted. */
  readonly leases: string[] = ['none'];

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** A lease is named here as the test names it: each server has an identifier of its own. */
  txn(revision: number): ITxnRequest {
    // No key is written twice in one transaction: a server refuses that.
    const keys = KEYS.toSorted(() => this.#random.next() - 0.5);
    return this.#txn(keys, revision, 2);
  }

  range(): IRangeRequest {
    const random = this.#random;
    const [key, end] = random.chance(0.3) ? [random.pick(KEYS), undefined] : random.pick(RANGES);
    return {
      key: Buffer.from(key),
      ...(end !== undefined && { range_end: Buffer.from(end) }),
      ...(random.chance(0.4) && { limit: random.between(0, 3) }),
      ...(random.chance(0.4) && { sort_order: random.pick(ORDERS), sort_target: random.pick(TARGETS) }),
      ...(random.chance(0.1) && { count_only: true }),
    };
  }

  #txn(keys: string[], revision: number, depth: number): ITxnRequest {
    const random = this.#random;
    const conditions = Array.from({ length: random.pick([0, 1, 1, 2]) }, () => this.#condition(revision));
    return {
      compare: conditions,
      success: this.#operations(keys, revision, depth),
      failure: this.#operations(keys, revision, depth),
    };
  }

  #operations(keys: string[], revision: number, depth: number): IRequestOp[] {
    const random = this.#random;
    return Array.from({ length: random.between(0, 3) }, (): IRequestOp => {
      if (depth > 0 && random.chance(0.25)) return { request_txn: this.#txn(keys, revision, depth - 1) };
      const key = keys.length > 0 && random.chance(0.7) ? keys.pop() : undefined;
      if (key === undefined) return { request_range: this.range() };
      return random.chance(0.3)
        ? { request_delete_range: { key: Buffer.from(key) } }
        : { request_put: this.#put(key) };
    });
  }

  #put(key: string): NonNullable<IRequestOp['request_put']> {
    const random = this.#random;
    const keepsValue = random.chance(0.1);
    const keepsLease = random.chance(0.15);
    return {
      key: Buffer.from(key),
      ...(keepsValue ? { ignore_value: true } : { value: Buffer.from(random.pick(VALUES)) }),
      ...(keepsLease ? { ignore_lease: true } : random.chance(0.5) && { lease: this.lease() }),
    };
  }

  lease(): string {
    return this.#random.chance(0.05) ? 'none' : this.#random.pick(this.leases);
  }

  #condition(revision: number): ICompare {
    const random = this.#random;
    const [key, end] = random.chance(0.5) ? [random.pick(KEYS), undefined] : random.pick(RANGES);
    const range = { key: Buffer.from(key), ...(end !== undefined && { range_end: Buffer.from(end) }) };
    const result = random.pick(RESULTS);
    const near = Math.max(0, random.pick([0, revision, revision - random.between(0, 12)]));
    switch (random.between(0, 4)) {
      case 0:
        return { ...range, result, target: 'Create', create_revision: near };
      case 1:
        return { ...range, result, target: 'Mod', mod_revision: near };
      case 2:
        return { ...range, result, target: 'Value', value: Buffer.from(random.pick(VALUES)) };
      case 3:
        return { ...range, result, target: 'Version', version: random.between(0, 3) };
      default:
        return { ...range, result: random.pick(['Equal', 'NotEqual']), target: 'Lease', lease: this.lease() };
    }
  }
}
