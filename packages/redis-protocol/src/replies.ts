import type { Holder, LockMode, ResourceState, RenewalStatus, Waiter } from '@locks/core/backend';
import { NOBODY_HOLDS, ANOTHER_HOLDS } from './renewal-status.ts';
import { modeOfLimit } from './mode.ts';
import { listIn, partsOf, tokenIn, UnexpectedReplyError, wholeIn } from './reply-shape.ts';
import { parseMark, parseMember, parseShare, parseValue } from './value.ts';

// Decodes the replies and messages of the scripts. The header of each script in `scripts` shows how they are encoded. Each decoder
// checks the form of its reply, and throws an `UnexpectedReplyError`: with an open `MULTI` every reply is `QUEUED`.

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
    | { readonly status: 'contended' | 'reached-max-waiters' }
  );

export interface ReleaseReply extends WithHandOffs {
  readonly status: 'released' | 'not-held' | 'unknown';
}

/** The label of a foreign hold: messages name it, where the value may be any text of the application. */
const FOREIGN = 'another program';
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
    handOffs.push({ id: String(reply[at]), token: wholeIn(reply[at + 1]) });
  }
  return handOffs;
}

/** Decodes a time that is left; PTTL rounds up. */
function leftOf(pttl: unknown): number {
  return wholeIn(pttl) - 1;
}

/** The mode that a conflict names by its limit. */
function modeInConflict(limit: unknown): LockMode {
  return modeOfLimit(wholeIn(limit), 1);
}

export function decodeAttempt(reply: unknown): RedisAttemptReply {
  const parts = partsOf(reply);
  switch (parts[0]) {
    case 'granted':
      return {
        status: 'granted',
        token: tokenIn(parts[1]),
        leftMs: leftOf(parts[2]),
        handOffs: handOffsFrom(parts, 3),
      };
    case 'waiting':
      return {
        status: 'waiting',
        position: wholeIn(parts[1]),
        lastToken: wholeIn(parts[2]),
        endsInMs: wholeIn(parts[3]),
        handOffs: handOffsFrom(parts, 4),
      };
    case 'conflict':
      return { status: 'conflict', with: modeInConflict(parts[1]), handOffs: handOffsFrom(parts, 2) };
    case 'reached-max-waiters':
      return { status: 'reached-max-waiters', handOffs: handOffsFrom(parts, 1) };
    case 'contended':
      return CONTENDED;
    default:
      // The only reply without a word: the token of a grant for the whole ttl.
      return { status: 'granted', token: tokenIn(reply), leftMs: undefined, handOffs: NO_HAND_OFFS };
  }
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
  const [word, ...granted] = partsOf(reply);
  switch (word) {
    case 'contended':
      return undefined;
    case 'granted': {
      const locks: { token: bigint; leftMs: number }[] = [];
      for (let at = 0; at < granted.length; at += 2) {
        locks.push({ token: tokenIn(granted[at]), leftMs: leftOf(granted[at + 1]) });
      }
      return locks;
    }
    default:
      throw new UnexpectedReplyError(reply);
  }
}

/** The reply of `release`, `abandon` and `release-key`. */
export function decodeRelease(reply: unknown): ReleaseReply {
  const parts = partsOf(reply);
  switch (parts[0]) {
    case 'released':
      return parts.length === 1 ? RELEASED : { status: 'released', handOffs: handOffsFrom(parts, 1) };
    case 'not-held':
      return parts.length === 1 ? NOT_HELD : { status: 'not-held', handOffs: handOffsFrom(parts, 1) };
    default:
      throw new UnexpectedReplyError(reply);
  }
}

export function decodeDowngrade(reply: unknown): WithHandOffs & { readonly renewalStatus: RenewalStatus } {
  const parts = partsOf(reply);
  switch (parts[0]) {
    case 'nobody-holds':
      return { renewalStatus: NOBODY_HOLDS, handOffs: NO_HAND_OFFS };
    case 'another-holds':
      return { renewalStatus: ANOTHER_HOLDS, handOffs: NO_HAND_OFFS };
    case 'shared':
      return {
        renewalStatus: { status: 'held', validForMs: leftOf(parts[1]) },
        handOffs: handOffsFrom(parts, 2),
      };
    default:
      throw new UnexpectedReplyError(reply);
  }
}

export function decodeResize(reply: unknown): WithHandOffs & { readonly conflict: LockMode | undefined } {
  const parts = partsOf(reply);
  switch (parts[0]) {
    case 'set':
      return { conflict: undefined, handOffs: handOffsFrom(parts, 1) };
    case 'conflict':
      return { conflict: modeInConflict(parts[1]), handOffs: NO_HAND_OFFS };
    default:
      throw new UnexpectedReplyError(reply);
  }
}

export function decodeForceRelease(reply: unknown): WithHandOffs & { readonly ended: readonly Holder[] } {
  const parts = partsOf(reply);
  switch (parts[0]) {
    case 'nothing-ended':
      return { ended: [], handOffs: NO_HAND_OFFS };
    case 'ended':
      return { ended: holdersOf(parts.slice(1, 5)), handOffs: handOffsFrom(parts, 5) };
    default:
      throw new UnexpectedReplyError(reply);
  }
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
  const parts = partsOf(reply);
  switch (parts[0]) {
    case 'failed':
      return undefined;
    case 'checked': {
      const [lastToken, endsInMs] = [wholeIn(parts[1]), wholeIn(parts[2])];
      if (parts.length === 3) return { lastToken, endsInMs, held: NONE_HELD };
      const held = new Map<string, { token: number; leftMs: number }>();
      for (let at = 3; at < parts.length; at += 3) {
        held.set(String(parts[at]), { token: wholeIn(parts[at + 1]), leftMs: leftOf(parts[at + 2]) });
      }
      return { lastToken, endsInMs, held };
    }
    default:
      throw new UnexpectedReplyError(reply);
  }
}

export function decodeInspect(resource: string, reply: unknown): ResourceState {
  const list = listIn(reply, 5);
  const [value, , now, , limit, ...queue] = list;
  const nowMs = wholeIn(now);
  const marked = typeof value === 'string' ? parseMark(value) : undefined;
  const waiters: Waiter[] = [];
  for (let at = 0; at < queue.length; at += 2) {
    const { id, weight, label } = parseMember(String(queue[at]));
    const waitingForMs = Math.max(0, nowMs - Number(queue[at + 1]) / 1000);
    const mode = weight === undefined ? EXCLUSIVE : modeOfLimit(weight && (marked || -Number(limit)), weight);
    waiters.push({ acquisitionId: id, mode, ...(label === '' ? {} : { label }), waitingForMs });
  }
  return { name: resource, holders: holdersOf(list), waiters };
}

/**
 * The holders in a reply of `inspect` or `force-release`: `[value of the lock key, pttl, server ms, shares, …]`. A
 * stranger's lock is a holder too, with the whole value as its acquisition id, which `force-release` takes.
 */
function holdersOf([value, pttl, now, shares]: readonly unknown[]): Holder[] {
  if (typeof value !== 'string') return [];
  const limit = parseMark(value);
  if (limit !== undefined) return sharesOf(limit, wholeIn(now), listIn(shares, 0));
  const own = parseValue(value);
  const leftMs = wholeIn(pttl);
  const expiresInMs = leftMs >= 0 ? { expiresInMs: leftMs } : {};
  if (own === undefined) return [{ acquisitionId: value, mode: EXCLUSIVE, label: FOREIGN, ...expiresInMs }];
  const { id, label, token } = own;
  return [{ acquisitionId: id, mode: EXCLUSIVE, ...described(label, token, wholeIn(now)), ...expiresInMs }];
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
