import type { LockMode } from '@locks/core/backend';
import type { HoldRecord, LockRecord, WaiterRecord } from '@locks/core/rules';
import { textOf } from './bytes.ts';
import type { SimulatedRedis } from './simulated-redis.ts';

/** What the keys of one lock say, in the terms of the rules of `@locks/core/rules`. Times are server ms. */
export interface LockView {
  /** Holds in the order of their tokens. Waiters in their order, those of dead processes too: Redis keeps them until they are passed over. */
  readonly record: LockRecord;
  /** Waits where it holds or waits already: a request that the network repeated came after a check had moved the waiter. */
  readonly repeated: ReadonlySet<string>;
  /** The position of each waiter. */
  readonly positions: ReadonlyMap<string, number>;
  /** Shares hold, and the next script that reads them counts them again. */
  readonly mayHaveEnded: boolean;
  /** The queue's key is there, and nobody waits: attempts take the slow path. */
  readonly hasEmptyQueue: boolean;
  /** Shares hold. */
  readonly isShared: boolean;
  /** The limit of the permits that hold or wait; 0 if there are none. */
  readonly permitLimit: number;
  /** Until when the processes that wait count as alive, by their `notify`. */
  readonly aliveUntil: ReadonlyMap<string, number>;
}

const EXCLUSIVE_VALUE = /^([\w-]+)\|[+-]\|(\d+)\|([^]*)$/;
const MARK = /^\*(\d+)\|\d+\|[+-]\|(\d+)\|\d+$/;
const SHARE = /^(\d+)\|(\d+)\|(\d+)\|(\d+)\|([^]*)$/;
const MEMBER = /^([^|]*)\|(\d+):?(\d*)\|([^|]*)\|([^]*)$/;
/** The member of the queue that has the limit of waiting permits. */
const LIMIT_MEMBER = '#';

/**
 * Reads the keys of a lock as the rules see them. Where the two differ:
 *
 * - An exclusive hold ends after its key's last millisecond, in the rules with it.
 * - A hold that was handed off looks like any other.
 * - Shares count as long as they have not ended, whether or not a script has removed them.
 * - A stranger's value is an exclusive hold without a token, its id the whole value.
 */
export function viewOf(server: SimulatedRedis, lock: string, token: string, now: number): LockView {
  const queue = `{${lock}}:q`;
  const held = stringAt(server, lock);
  const mark = MARK.exec(held ?? '');
  const limit = mark === null ? undefined : Number(mark[1]);
  const members = membersOf(server, queue);
  const holds =
    limit === undefined
      ? exclusiveHolds(held, server.peek(lock)?.expiresAt)
      : sharesAt(server, `{${lock}}:h`, limit).filter(({ until = 0 }) => until > now);
  // A mark whose shares have all ended says nothing any more.
  const waitingLimit =
    (holds.length > 0 && limit) || -(members.find(([member]) => member === LIMIT_MEMBER)?.[1] ?? 0);
  const waiters: WaiterRecord[] = [];
  const positions = new Map<string, number>();
  const aliveUntil = new Map<string, number>();
  const repeated = new Set<string>();
  const holding = new Set(holds.map(({ id }) => id));
  for (const [member, score] of members) {
    if (member.startsWith('@')) aliveUntil.set(member.slice(1), -score);
    const waiter = score >= 0 ? waiterOf(member, waitingLimit) : undefined;
    // An id that waits twice, since a repeated request came late, waits where it came first.
    if (waiter !== undefined && (positions.has(waiter.id) || holding.has(waiter.id))) repeated.add(waiter.id);
    if (waiter === undefined || positions.has(waiter.id)) continue;
    waiters.push(waiter);
    positions.set(waiter.id, score);
  }
  const last = /^(\d+);?\d*$/.exec(stringAt(server, token) ?? '')?.[1];
  return {
    record: { token: Number(last ?? 0), holds, waiters },
    positions,
    repeated,
    aliveUntil,
    hasEmptyQueue: members.length > 0 && waiters.length === 0,
    isShared: limit !== undefined,
    permitLimit: waitingLimit,
    mayHaveEnded: mark !== null && Number(mark[2]) <= now,
  };
}

function stringAt(server: SimulatedRedis, key: string): string | undefined {
  const value = server.peek(key)?.value;
  return value?.type === 'string' ? textOf(value.text) : undefined;
}

function membersOf(server: SimulatedRedis, key: string): readonly (readonly [string, number])[] {
  const value = server.peek(key)?.value;
  if (value?.type !== 'zset') return [];
  return value.members.ordered().map(({ member, score }) => [textOf(member), score] as const);
}

function exclusiveHolds(held: string | undefined, until: number | undefined): readonly HoldRecord[] {
  if (held === undefined) return [];
  const [, id = held, token = '0', label = ''] = EXCLUSIVE_VALUE.exec(held) ?? [];
  return [holdOf(id, { kind: 'exclusive' }, { label, token: Number(token), until })];
}

function sharesAt(server: SimulatedRedis, key: string, limit: number): readonly HoldRecord[] {
  const value = server.peek(key)?.value;
  if (value?.type !== 'hash') return [];
  const holds = [...value.fields].flatMap(([id, share]) => {
    const match = SHARE.exec(textOf(share));
    if (match === null) return [];
    const [from = 0, ttl = 0, token = 0, weight = 0] = match.slice(1, 5).map(Number);
    return [holdOf(textOf(id), modeOf(limit, weight), { label: match[5] ?? '', token, until: from + ttl })];
  });
  return holds.sort((a, b) => a.token - b.token);
}

function waiterOf(member: string, limit: number): WaiterRecord | undefined {
  const match = MEMBER.exec(member);
  if (match === null) return undefined;
  const [, id = '', px = '', weight = '', client = '', label = ''] = match;
  const mode: LockMode =
    weight === '' ? { kind: 'exclusive' } : modeOf(weight === '0' ? 0 : limit, Number(weight));
  return { id, mode, label, client, ttl: Number(px), since: undefined };
}

/** The mode of a share: limit 0 for a reader. */
export function modeOf(limit: number, weight: number): LockMode {
  return limit === 0 ? { kind: 'shared' } : { kind: 'permit', limit, weight };
}

function holdOf(id: string, mode: LockMode, rest: Pick<HoldRecord, 'label' | 'token' | 'until'>): HoldRecord {
  return { id, mode, ...rest, since: undefined, span: undefined, stolen: false };
}
