import type { LockMode } from '@locks/core/backend';
import type { IKeyValue } from 'etcd3';

/** An acquisition as it stands in the store: one key. */
export interface Entry {
  readonly key: Buffer;
  readonly acquisitionId: string;
  readonly held: boolean;
  readonly mode: LockMode;
  readonly label?: string;
  /** Of a hold: the revision at which it was granted. */
  readonly token: bigint;
  /** The place in the queue. */
  readonly createRevision: number;
  /** Of a waiter: its place among those that were queued in the same step. */
  readonly rank?: number;
  readonly modRevision: number;
  readonly lease: string;
  /** When it was granted or queued, on its client's clock: for operators only. */
  readonly at: number;
}

interface Detail {
  readonly label?: string | undefined;
  readonly weight?: number | undefined;
  readonly token?: string | undefined;
  readonly rank?: number | undefined;
  readonly at: number;
}

/**
 * The first characters of a value. Conditions of transactions compare whole ranges with them, so their order matters:
 * permits (`p`, the limit, `h` or `w`) stand below all `r`; of those, exclusive holds below shared ones, and all holds
 * below all waiters.
 */
export const TAGS = {
  exclusiveHold: 're',
  sharedHold: 'rs',
  afterHolds: 'rt',
  exclusiveWaiter: 'rx',
  sharedWaiter: 'ry',
  /** All that is exclusive or shared stands from here … */
  readersAndWriters: 'r',
  /** … up to here. */
  afterReadersAndWriters: 's',
} as const;

const LIMIT_DIGITS = 16;

/** What all permits of one limit start with. */
export function permitTag(limit: number): string {
  return `p${String(limit).padStart(LIMIT_DIGITS, '0')}`;
}

export interface Written {
  readonly mode: LockMode;
  readonly label?: string | undefined;
  /** Absent where the revision of the write itself is the token. */
  readonly token?: bigint;
  readonly rank?: number | undefined;
  readonly at?: number;
}

export function encodeHold(written: Written): Buffer {
  return encode(holdTag(written.mode), written);
}

export function encodeWaiter(written: Written): Buffer {
  return encode(waiterTag(written.mode), written);
}

/** The same entry with another mode or limit. */
export function encodeAgain(entry: Entry, mode: LockMode): Buffer {
  const { label, at, token, rank } = entry;
  return entry.held ? encodeHold({ mode, label, at, token }) : encodeWaiter({ mode, label, at, rank });
}

export function decodeEntry(kv: IKeyValue): Entry {
  const text = kv.value.toString('utf8');
  const start = text.indexOf('{');
  const tag = start < 0 ? text : text.slice(0, start);
  const detail = parseDetail(start < 0 ? '' : text.slice(start));
  const { token, label, rank } = detail;
  return {
    key: kv.key,
    acquisitionId: kv.key.subarray(kv.key.lastIndexOf(SLASH) + 1).toString('utf8'),
    // Who wrote something else there is not known: better that it blocks than that two hold.
    held: !(tag === TAGS.exclusiveWaiter || tag === TAGS.sharedWaiter || /^p\d+w$/.test(tag)),
    mode: modeOf(tag, detail),
    ...(label === undefined ? undefined : { label }),
    token: BigInt(token ?? kv.mod_revision),
    createRevision: Number(kv.create_revision),
    ...(rank === undefined ? undefined : { rank }),
    modRevision: Number(kv.mod_revision),
    lease: String(kv.lease),
    at: detail.at,
  };
}

const SLASH = 0x2f;

function encode(tag: string, { mode, label, token, rank, at = Date.now() }: Written): Buffer {
  const weight = mode.kind === 'permit' ? mode.weight : undefined;
  const detail: Detail = { label, weight, token: token?.toString(), rank: rank === 0 ? undefined : rank, at };
  return Buffer.from(tag + JSON.stringify(detail));
}

function holdTag(mode: LockMode): string {
  switch (mode.kind) {
    case 'exclusive':
      return TAGS.exclusiveHold;
    case 'shared':
      return TAGS.sharedHold;
    case 'permit':
      return `${permitTag(mode.limit)}h`;
    default:
      return mode satisfies never;
  }
}

function waiterTag(mode: LockMode): string {
  switch (mode.kind) {
    case 'exclusive':
      return TAGS.exclusiveWaiter;
    case 'shared':
      return TAGS.sharedWaiter;
    case 'permit':
      return `${permitTag(mode.limit)}w`;
    default:
      return mode satisfies never;
  }
}

function modeOf(tag: string, { weight = 1 }: Detail): LockMode {
  if (tag === TAGS.sharedHold || tag === TAGS.sharedWaiter) return { kind: 'shared' };
  const permit = /^p(\d+)[hw]$/.exec(tag);
  return permit === null ? { kind: 'exclusive' } : { kind: 'permit', limit: Number(permit[1]), weight };
}

function parseDetail(text: string): Detail {
  try {
    return JSON.parse(text) as Detail;
  } catch {
    return { at: Date.now() };
  }
}
