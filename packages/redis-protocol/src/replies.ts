import type { Holder, LockMode, ResourceState, RenewalStatus, Waiter } from '@locks/core/backend';
import { modeOfLimit } from './mode.ts';
import { parseMark, parseMember, parseShare, parseValue } from './value.ts';

// Decodes the replies and messages of the scripts. The header of each script in `scripts` shows how they are encoded.

/** A waiter of the calling process to which a script handed off the lock. The reply names it, so it gets no message. */
export interface RedisHandOff {
  readonly id: string;
  readonly token: number;
}

interface WithHandOffs {
  readonly handOffs: readonly RedisHandOff[];
}

/**
 * `leftMs` of a grant: what is left if the id held the lock already; `undefined` for a new grant, for its whole ttl.
 * `endsInMs` of a waiter: until a hold of the lock can end by itself; negative if none does.
 */
export type RedisAttemptReply = WithHandOffs &
  (
    | { readonly status: 'granted'; readonly token: bigint; readonly leftMs: number | undefined }
    | {
        readonly status: 'waiting';
        readonly position: number;
        readonly lastToken: number;
        readonly endsInMs: number;
      }
    | { readonly status: 'conflict'; readonly with: LockMode }
    | { readonly status: 'contended' | 'full' }
  );

export interface ReleaseReply extends WithHandOffs {
  readonly status: 'released' | 'not-held' | 'unknown';
}

/** In the place of a limit in conflict. */
const FULL_LIMIT = -2;
const NO_HAND_OFFS: readonly RedisHandOff[] = [];
const CONTENDED: RedisAttemptReply = { status: 'contended', handOffs: NO_HAND_OFFS };
export const RELEASED: ReleaseReply = { status: 'released', handOffs: NO_HAND_OFFS };
const NOT_HELD: ReleaseReply = { status: 'not-held', handOffs: NO_HAND_OFFS };
const EXCLUSIVE: LockMode = { kind: 'exclusive' };

/** The hand-offs `id, token, …` at the end of a reply. */
function handOffsFrom(reply: readonly unknown[], from: number): readonly RedisHandOff[] {
  if (reply.length <= from) return NO_HAND_OFFS;
  const handOffs: RedisHandOff[] = [];
  for (let at = from; at < reply.length; at += 2) {
    handOffs.push({ id: String(reply[at]), token: Number(reply[at + 1]) });
  }
  return handOffs;
}

/** Decodes a time that is left; PTTL rounds up. */
function leftOf(pttl: unknown): number {
  return Number(pttl) - 1;
}

export function decodeAttempt(reply: unknown): RedisAttemptReply {
  if (!Array.isArray(reply)) {
    if (Number(reply) === 0) return CONTENDED;
    return { status: 'granted', token: BigInt(reply as string), leftMs: undefined, handOffs: NO_HAND_OFFS };
  }
  const first = Number(reply[0]);
  const second = Number(reply[1]);
  if (first < 0) {
    const handOffs = handOffsFrom(reply, 3);
    return { status: 'waiting', position: -first, lastToken: second, endsInMs: Number(reply[2]), handOffs };
  }
  const handOffs = handOffsFrom(reply, 2);
  if (first === 0 && second === FULL_LIMIT) return { status: 'full', handOffs };
  if (first === 0) return { status: 'conflict', with: modeOfLimit(second), handOffs };
  return { status: 'granted', token: BigInt(first), leftMs: leftOf(second), handOffs };
}

/** The message to a process whose waiter was handed a lock: `granted <id> <token> <lock key>`. */
export function decodeMessage(text: string): (RedisHandOff & { readonly lock: string }) | undefined {
  const match = /^granted ([\w-]+) (\d+) ([^]+)$/.exec(text);
  return match ? { id: match[1] as string, token: Number(match[2]), lock: match[3] as string } : undefined;
}

/** Decodes the token and the validity left of each lock; `undefined`: contended, nothing was taken. */
export function decodeMany(
  reply: unknown,
): readonly { readonly token: bigint; readonly leftMs: number }[] | undefined {
  if (!Array.isArray(reply)) return undefined;
  const locks: { token: bigint; leftMs: number }[] = [];
  for (let at = 0; at < reply.length; at += 2) {
    locks.push({ token: BigInt(reply[at] as number | string), leftMs: leftOf(reply[at + 1]) });
  }
  return locks;
}

/** The reply of `release`, `abandon` and `release-key`. */
export function decodeRelease(reply: unknown): ReleaseReply {
  if (Array.isArray(reply)) return { status: 'released', handOffs: handOffsFrom(reply, 0) };
  return Number(reply) === 0 ? NOT_HELD : RELEASED;
}

export function decodeDowngrade(reply: unknown): WithHandOffs & { readonly renewalStatus: RenewalStatus } {
  if (!Array.isArray(reply)) return { renewalStatus: decodeRenewalStatus(reply), handOffs: NO_HAND_OFFS };
  return {
    renewalStatus: { status: 'held', validForMs: leftOf(reply[0]) },
    handOffs: handOffsFrom(reply, 1),
  };
}

export function decodeResize(reply: unknown): WithHandOffs & { readonly conflict: LockMode | undefined } {
  const [set, limit] = reply as unknown[];
  return Number(set) === 0
    ? { conflict: modeOfLimit(Number(limit)), handOffs: NO_HAND_OFFS }
    : { conflict: undefined, handOffs: handOffsFrom(reply as unknown[], 1) };
}

export function decodeForceRelease(reply: unknown): WithHandOffs & { readonly ended: readonly Holder[] } {
  if (!Array.isArray(reply)) return { ended: [], handOffs: NO_HAND_OFFS };
  return { ended: holdersOf(reply), handOffs: handOffsFrom(reply, 4) };
}

const HELD: RenewalStatus = { status: 'held' };
const ABSENT: RenewalStatus = { status: 'lost', reason: 'force-released' };
const TAKEN_OVER: RenewalStatus = { status: 'lost', reason: 'taken-over' };

const NOBODY_HOLDS = 0;
const ANOTHER_HOLDS = 2;

/** The reply of `renew`, `renew-shares` and `renew-part` for one lease. */
export function decodeRenewalStatus(reply: unknown): RenewalStatus {
  const number = Number(reply);
  if (number === NOBODY_HOLDS) return ABSENT;
  if (number === ANOTHER_HOLDS) return TAKEN_OVER;
  return number > 0 ? HELD : { status: 'unknown', error: new Error(String(reply)) };
}

/** The reply of `check` for one resource. */
export interface RedisCheckReply {
  readonly lastToken: number;
  /** The time until a hold of the lock can end by itself, in milliseconds; negative if none does. */
  readonly endsInMs: number;
  /** The waiters of this process that hold, by id; the others wait. */
  readonly held: ReadonlyMap<string, { readonly token: number; readonly leftMs: number }>;
}

const NONE_HELD: RedisCheckReply['held'] = new Map();

/** Decodes the reply to a check; `undefined`: the check failed for the keys of this resource. */
export function decodeCheck(reply: unknown): RedisCheckReply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [lastToken, endsInMs] = [Number(reply[0]), Number(reply[1])];
  if (reply.length === 2) return { lastToken, endsInMs, held: NONE_HELD };
  const held = new Map<string, { token: number; leftMs: number }>();
  for (let at = 2; at < reply.length; at += 3) {
    held.set(String(reply[at]), { token: Number(reply[at + 1]), leftMs: leftOf(reply[at + 2]) });
  }
  return { lastToken, endsInMs, held };
}

export function decodeInspect(resource: string, reply: unknown): ResourceState {
  const [value, , now, , limit, ...queue] = reply as unknown[];
  const nowMs = Number(now);
  const marked = typeof value === 'string' ? parseMark(value) : undefined;
  const waiters: Waiter[] = [];
  for (let at = 0; at < queue.length; at += 2) {
    const { id, weight, label } = parseMember(String(queue[at]));
    const waitingForMs = Math.max(0, nowMs - Number(queue[at + 1]) / 1000);
    const mode = weight === undefined ? EXCLUSIVE : modeOfLimit(weight && (marked || -Number(limit)), weight);
    waiters.push({ acquisitionId: id, mode, ...(label === '' ? {} : { label }), waitingForMs });
  }
  return { resource, holders: holdersOf(reply as unknown[]), waiters };
}

/**
 * The holders in a reply of `inspect` or `force-release`: `[value of the lock key, pttl, server ms, shares, …]`. A
 * stranger's lock is a holder too, with the whole value as its acquisition id.
 */
function holdersOf([value, pttl, now, shares]: readonly unknown[]): Holder[] {
  if (typeof value !== 'string') return [];
  const limit = parseMark(value);
  if (limit !== undefined) return sharesOf(limit, Number(now), shares as readonly unknown[]);
  const own = parseValue(value);
  const expiresInMs = Number(pttl) >= 0 ? { expiresInMs: Number(pttl) } : {};
  if (own === undefined) return [{ acquisitionId: value, mode: EXCLUSIVE, ...expiresInMs }];
  const { id, label, token } = own;
  return [{ acquisitionId: id, mode: EXCLUSIVE, ...described(label, token, Number(now)), ...expiresInMs }];
}

function sharesOf(limit: number, nowMs: number, listed: readonly unknown[]): Holder[] {
  const holders: Holder[] = [];
  for (let at = 0; at < listed.length; at += 2) {
    const share = parseShare(String(listed[at + 1]));
    if (share === undefined || share.endsAt <= nowMs) continue;
    const { endsAt, label, token, weight } = share;
    holders.push({
      acquisitionId: String(listed[at]),
      mode: modeOfLimit(limit, weight),
      ...described(label, token, nowMs),
      expiresInMs: endsAt - nowMs,
    });
  }
  return holders.sort((a, b) => Number((a.fencingToken ?? 0n) - (b.fencingToken ?? 0n)));
}

function described(label: string, fencingToken: bigint, nowMs: number): Partial<Holder> {
  // A token is the server's time in µs at the grant, or shortly ahead of it.
  const heldForMs = Math.max(0, nowMs - Number(fencingToken) / 1000);
  return { fencingToken, ...(label === '' ? {} : { label }), heldForMs };
}
