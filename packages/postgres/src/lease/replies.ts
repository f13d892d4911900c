import type {
  AcquireRequest,
  Grant,
  Holder,
  LockMode,
  LossReason,
  ResourceState,
  RenewalStatus,
  Waiter,
} from '@locks/core/backend';
import type { TextRow } from '../driver/postgres-driver.ts';
import { toMode } from './modes.ts';

/** A hand-off, as the function `serve` reports it: in a reply, or by NOTIFY. */
export interface HandOff {
  readonly id: string;
  readonly token: bigint;
}

/** A grant. `ms`: what is left of a lease that an earlier sending was granted; `undefined`: the request's ttl. */
export interface GrantedReply {
  readonly status: 'granted';
  readonly token: bigint;
  readonly ms: number | undefined;
}

export type AttemptReply =
  | GrantedReply
  | { readonly status: 'queued'; readonly ticket: bigint; readonly expiryMs: number }
  | { readonly status: 'full' }
  | { readonly status: 'conflict'; readonly with: LockMode };

/** The first line of a reply, and the hand-offs to waiters of this backend that came with it. */
export interface ServedReply {
  readonly first: string;
  readonly handOffs: readonly HandOff[];
}

export function parseServed(reply: string): ServedReply {
  const end = reply.indexOf('\n');
  if (end < 0) return { first: reply, handOffs: [] };
  return { first: reply.slice(0, end), handOffs: parseHandOffs(reply.slice(end + 1)) };
}

export function parseHandOffs(lines: string): HandOff[] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map(parseHandOff);
}

export function parseHandOff(line: string): HandOff {
  const [id = '', token = '0'] = line.split(' ');
  return { id, token: BigInt(token) };
}

export function parseAttempt(first: string): AttemptReply {
  const [letter, one = '0', two = '0', three = '0'] = first.split(' ');
  switch (letter) {
    case 'g':
      return { status: 'granted', token: BigInt(one), ms: undefined };
    case 'h':
      return { status: 'granted', token: BigInt(one), ms: Number(two) };
    case 'q':
      return { status: 'queued', ticket: BigInt(one), expiryMs: Number(two) };
    case 'c':
      return { status: 'conflict', with: toMode(one, two, three) };
    case 'f':
      return { status: 'full' };
    default:
      throw new Error(`a function of the schema gave a reply that this version does not know: ${first}`);
  }
}

export function toGrant(request: AcquireRequest, { token, ms }: GrantedReply, countedFrom: number): Grant {
  const grant = { request, fencingToken: token, countedFrom };
  return ms === undefined ? grant : { ...grant, validForMs: ms };
}

/** A hold that the check of waiters found. */
export interface FoundHold {
  readonly token: bigint;
  /** The validity that is left, in milliseconds. */
  readonly leftMs: number;
}

export interface CheckReply {
  /** The time until the next hold expires, in milliseconds; negative: there is none. */
  readonly expiryMs: number;
  /** The holds that were found, by acquisition id. */
  readonly held: ReadonlyMap<string, FoundHold>;
  readonly missing: ReadonlySet<string>;
  readonly handOffs: readonly HandOff[];
}

export function parseCheck(reply: string): CheckReply {
  const [head = '', served = ''] = reply.split('\n\n');
  const [expiry, ...lines] = head.split('\n').filter((line) => line !== '');
  const held = new Map<string, FoundHold>();
  const missing = new Set<string>();
  for (const line of lines) {
    const [letter, id = '', token = '0', leftMs = '0'] = line.split(' ');
    if (letter === 'h') held.set(id, { token: BigInt(token), leftMs: Number(leftMs) });
    else missing.add(id);
  }
  return { expiryMs: Number(expiry), held, missing, handOffs: parseHandOffs(served) };
}

const LOSSES: Readonly<Record<string, LossReason>> = { e: 'expired', t: 'taken-over', f: 'force-released' };

export function toRenewalStatus(letter: string): RenewalStatus {
  return letter === 'h' ? { status: 'held' } : { status: 'lost', reason: LOSSES[letter] ?? 'force-released' };
}

/** Reads rows of the function `state`, which come in the order of the names. */
export function toStates(rows: readonly TextRow[]): Map<string, ResourceState> {
  const states = new Map<string, { name: string; holders: Holder[]; waiters: Waiter[] }>();
  for (const row of rows) {
    const resource = toName(row[0]);
    let state = states.get(resource);
    if (state === undefined) {
      state = { name: resource, holders: [], waiters: [] };
      states.set(resource, state);
    }
    if (row[1] === 'h') state.holders.push(toHolder(row));
    else state.waiters.push(toWaiter(row));
  }
  return states;
}

export function toHolder(row: TextRow): Holder {
  return {
    ...toWho(row),
    fencingToken: BigInt(row[7] ?? 0),
    heldForMs: Math.max(0, Number(row[8])),
    expiresInMs: Number(row[9]),
  };
}

function toWaiter(row: TextRow): Waiter {
  return { ...toWho(row), waitingForMs: Math.max(0, Number(row[8])) };
}

function toWho(row: TextRow): { acquisitionId: string; mode: LockMode; label?: string } {
  const [, , id, kind, weight, permits, label] = row;
  const who = { acquisitionId: id ?? '', mode: toMode(kind, weight, permits) };
  return label === null || label === undefined ? who : { ...who, label };
}

/** A name comes as hexadecimal digits, because the server's own notation of bytes depends on a setting. */
function toName(digits: string | null | undefined): string {
  return Buffer.from(digits ?? '', 'hex').toString('utf8');
}
