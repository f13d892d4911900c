import type { Holder, LockMode, LossReason, ResourceState, Standing, Waiter } from '@locks/core/backend';
import type { TextRow } from '../pool/statements.ts';
import { toMode } from './modes.ts';

/** A hand-over, as `serve` tells of it: in a reply, or by NOTIFY. */
export interface HandOver {
  readonly id: string;
  readonly token: bigint;
  /** How long it lasts, from a moment that only the server knows. */
  readonly ms: number;
}

export type AttemptReply =
  | { readonly status: 'granted'; readonly token: bigint; readonly ms: number | undefined }
  | { readonly status: 'queued'; readonly ticket: bigint; readonly expiryMs: number }
  | { readonly status: 'conflict'; readonly with: LockMode };

/** The first line of a reply, and what came with it. */
export interface Served {
  readonly first: string;
  readonly handOvers: readonly HandOver[];
}

export function splitServed(reply: string): Served {
  const end = reply.indexOf('\n');
  if (end < 0) return { first: reply, handOvers: [] };
  return { first: reply.slice(0, end), handOvers: parseHandOvers(reply.slice(end + 1)) };
}

export function parseHandOvers(lines: string): HandOver[] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map(parseHandOver);
}

export function parseHandOver(line: string): HandOver {
  const [id = '', token = '0', ms = '0'] = line.split(' ');
  return { id, token: BigInt(token), ms: Number(ms) };
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
    default:
      throw new Error(`the schema's functions gave a reply that this version does not know: ${first}`);
  }
}

export interface CheckReply {
  /** Until the next hold runs out; negative when there is none. */
  readonly expiryMs: number;
  readonly held: ReadonlyMap<string, HandOver>;
  readonly missing: ReadonlySet<string>;
  readonly handOvers: readonly HandOver[];
}

export function parseCheck(reply: string): CheckReply {
  const [head = '', served = ''] = reply.split('\n\n');
  const [expiry, ...lines] = head.split('\n').filter((line) => line !== '');
  const held = new Map<string, HandOver>();
  const missing = new Set<string>();
  for (const line of lines) {
    const hold = parseHandOver(line.slice('h '.length));
    if (line.startsWith('h')) held.set(hold.id, hold);
    else missing.add(hold.id);
  }
  return { expiryMs: Number(expiry), held, missing, handOvers: parseHandOvers(served) };
}

const losses: Readonly<Record<string, LossReason>> = { e: 'expired', t: 'taken-over', f: 'force-released' };

export function toStanding(letter: string): Standing {
  return letter === 'h' ? { status: 'held' } : { status: 'lost', reason: losses[letter] ?? 'force-released' };
}

/** Rows of the function `state`, of any number of resources, in its order; each name as hexadecimal digits. */
export function toStates(rows: readonly TextRow[]): Map<string, ResourceState> {
  const states = new Map<string, { resource: string; holders: Holder[]; waiters: Waiter[] }>();
  for (const row of rows) {
    const resource = toName(row[0]);
    let state = states.get(resource);
    if (state === undefined) {
      state = { resource, holders: [], waiters: [] };
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

/** Names come as hexadecimal digits: how the server writes bytes is a setting. */
export function toName(digits: string | null | undefined): string {
  return Buffer.from(digits ?? '', 'hex').toString('utf8');
}
