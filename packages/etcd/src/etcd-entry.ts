import { holdsAlone, type LockMode } from '@locks/core/backend';
import type { IKeyValue } from 'etcd3';

/** The key of an acquisition that holds or waits, as the store has it. */
export interface EtcdEntry {
  readonly key: Buffer;
  readonly acquisitionId: string;
  readonly held: boolean;
  readonly mode: LockMode;
  readonly label?: string;
  /** Whether somebody else wrote the key: it belongs to no acquisition. */
  readonly foreign: boolean;
  /**
   * The token of a hold: the revision of its grant, and its rank among the grants of the same transaction.
   */
  readonly token: bigint;
  /** The position in the queue. */
  readonly createRevision: number;
  /** The position among the waiters that were queued, or the holds that were granted, in the same transaction: from 0. */
  readonly rank: number;
  readonly modRevision: number;
  readonly lease: string;
  /** The time at which the acquisition was granted or queued, on its client's clock: for operators only. */
  readonly at: number;
}

/** The part of an entry that says where it is in the queue. `modRevision` changes with a grant or another limit. */
export type QueuePosition = Pick<EtcdEntry, 'createRevision' | 'rank' | 'modRevision' | 'mode'>;

/** What an entry was when it ended; `unknown`: its value was compacted, or was not read. */
export type EntryEnd = 'waited' | 'held alone' | 'held with others' | 'unknown';

/** What an entry is that ends now. */
export function endOf({ held, mode }: Pick<EtcdEntry, 'held' | 'mode'>): EntryEnd {
  if (!held) return 'waited';
  return holdsAlone(mode) ? 'held alone' : 'held with others';
}

interface EntryDetail {
  readonly label?: string | undefined;
  readonly weight?: number | undefined;
  readonly token?: string | undefined;
  readonly rank?: number | undefined;
  readonly at: number;
}

/**
 * The first characters of a value. The conditions of transactions compare whole ranges with these tags, so their order
 * matters: permits (`p`, the limit, `h` or `w`) sort below all `r`; among the `r`, exclusive holds sort below shared
 * holds, and all holds below all waiters.
 */
export const TAGS = {
  exclusiveHold: 're',
  sharedHold: 'rs',
  afterHolds: 'rt',
  exclusiveWaiter: 'rx',
  sharedWaiter: 'ry',
  /** Entries of exclusive and shared locks sort from here … */
  readersAndWriters: 'r',
  /** … to here. */
  afterReadersAndWriters: 's',
} as const;

/** The number of ranks that fit between two revisions: more than one transaction can write. */
export const RANKS = 128;

/** The token of a grant: all grants of one transaction have its revision (docs/spec.md §15.8). */
function tokenAt(revision: string, rank: number): bigint {
  return BigInt(revision) * BigInt(RANKS) + BigInt(rank);
}

const OWN_TAG = /^(?:r[esxy]|p\d+[hw])$/;
const LIMIT_DIGITS = 16;

/** The prefix of the values of all permits with one limit. */
export function permitTag(limit: number): string {
  return `p${String(limit).padStart(LIMIT_DIGITS, '0')}`;
}

export interface EntryFields {
  readonly mode: LockMode;
  readonly label?: string | undefined;
  readonly rank: number;
  readonly at?: number;
}

/** @param token - `undefined`: the token is that of the write itself */
export function encodeHold(written: EntryFields, token: bigint | undefined): Buffer {
  return encode(tagOf(written.mode, true), written, token);
}

export function encodeWaiter(written: EntryFields): Buffer {
  return encode(tagOf(written.mode, false), written, undefined);
}

/** Encodes an entry again, with another mode or limit. */
export function reencode(entry: EtcdEntry, mode: LockMode): Buffer {
  const { label, at, token, rank } = entry;
  return entry.held
    ? encodeHold({ mode, label, at, rank: 0 }, token)
    : encodeWaiter({ mode, label, at, rank });
}

export function decodeEntry(kv: IKeyValue): EtcdEntry {
  const text = kv.value.toString('utf8');
  const start = text.indexOf('{');
  const tag = start < 0 ? text : text.slice(0, start);
  const detail = parseDetail(start < 0 ? '' : text.slice(start));
  const { token, rank = 0 } = detail;
  // The label names the whole key, so that an operator finds it: the acquisition id is only the end of the key.
  const foreign = !OWN_TAG.test(tag);
  const label = !foreign ? detail.label : `the foreign key ${kv.key.toString('utf8')}`;
  return {
    key: kv.key,
    acquisitionId: kv.key.subarray(kv.key.lastIndexOf(SLASH) + 1).toString('utf8'),
    // The meaning of a foreign key is unknown: it counts as a hold, since two holders would be worse than none.
    held: !(tag === TAGS.exclusiveWaiter || tag === TAGS.sharedWaiter || /^p\d+w$/.test(tag)),
    mode: modeOf(tag, detail),
    ...(label === undefined ? undefined : { label }),
    foreign,
    token: token === undefined ? tokenAt(kv.mod_revision, rank) : BigInt(token),
    createRevision: Number(kv.create_revision),
    rank,
    modRevision: Number(kv.mod_revision),
    lease: String(kv.lease),
    at: detail.at,
  };
}

const SLASH = 0x2f;

function encode(
  tag: string,
  { mode, label, rank, at = Date.now() }: EntryFields,
  token: bigint | undefined,
): Buffer {
  const weight = mode.kind === 'permit' ? mode.weight : undefined;
  const detail: EntryDetail = {
    label,
    weight,
    token: token?.toString(),
    rank: rank === 0 ? undefined : rank,
    at,
  };
  return Buffer.from(tag + JSON.stringify(detail));
}

function tagOf(mode: LockMode, held: boolean): string {
  switch (mode.kind) {
    case 'exclusive':
      return held ? TAGS.exclusiveHold : TAGS.exclusiveWaiter;
    case 'shared':
      return held ? TAGS.sharedHold : TAGS.sharedWaiter;
    case 'permit':
      return permitTag(mode.limit) + (held ? 'h' : 'w');
    default:
      return mode satisfies never;
  }
}

function modeOf(tag: string, { weight = 1 }: EntryDetail): LockMode {
  if (tag === TAGS.sharedHold || tag === TAGS.sharedWaiter) return { kind: 'shared' };
  const permit = /^p(\d+)[hw]$/.exec(tag);
  return permit === null ? { kind: 'exclusive' } : { kind: 'permit', limit: Number(permit[1]), weight };
}

/** The detail of a value; of what somebody else wrote only the parts that are as this package writes them. */
function parseDetail(text: string): EntryDetail {
  try {
    const { label, weight, token, rank, at } = JSON.parse(text) as Partial<EntryDetail>;
    return {
      at: typeof at === 'number' ? at : Date.now(),
      ...(typeof label === 'string' && { label }),
      ...(Number.isSafeInteger(weight) && { weight }),
      ...(typeof token === 'string' && /^\d+$/.test(token) && { token }),
      ...(Number.isSafeInteger(rank) && { rank }),
    };
  } catch {
    return { at: Date.now() };
  }
}
