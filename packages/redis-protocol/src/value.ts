import type { AcquireRequest, Grant } from '@locks/core/backend';
import { weightArgument } from './mode.ts';

/** The value of a lock key that an exclusive hold wrote: `<id>|<flag>|<token>|<label>`. */
interface LockValue {
  readonly id: string;
  readonly token: bigint;
  readonly label: string;
}

/** The value that an exclusive grant wrote, as long as nobody waits. */
export function formatValue(grant: Grant): string {
  return beginningOf(grant) + (grant.request.label ?? '');
}

/** The value that an exclusive grant wrote, as long as nobody waits, without the label. */
export function beginningOf({ fencingToken, request: { acquisitionId } }: Grant): string {
  return `${acquisitionId}|-|${fencingToken}|`;
}

/** Parses the value of a lock key; `undefined` for a value that a stranger wrote. */
export function parseValue(value: string): LockValue | undefined {
  const match = /^([\w-]+)\|[+-]\|(\d+)\|([^]*)$/.exec(value);
  return match
    ? { id: match[1] as string, token: BigInt(match[2] as string), label: match[3] as string }
    : undefined;
}

/** A waiter's member of the queue: `<id>|<ttl>|<reply address>|<label>`; for other modes than exclusive `<ttl>:<weight>`. */
export function formatMember(
  { acquisitionId, label, mode, ttlMs }: AcquireRequest,
  replyAddress: string,
): string {
  const weight = weightArgument(mode);
  return `${acquisitionId}|${ttlMs}${weight && `:${weight}`}|${replyAddress}|${label ?? ''}`;
}

interface Member {
  readonly id: string;
  /** The weight of the member; `undefined` for exclusive. */
  readonly weight: number | undefined;
  readonly label: string;
}

export function parseMember(member: string): Member {
  const [id = '', time = '', , ...label] = member.split('|');
  const weight = time.split(':')[1];
  return { id, weight: weight === undefined ? undefined : Number(weight), label: label.join('|') };
}

/** The limit in the mark that shares keep at the lock key, `*<limit>|<used>|<flag>|<first>|<last>`: 0 for readers. */
export function parseMark(value: string): number | undefined {
  const match = /^\*(\d+)\|\d+\|[+-]\|\d+\|\d+$/.exec(value);
  return match ? Number(match[1]) : undefined;
}

/** The hold of one reader or permit. */
export interface Share {
  readonly endsAt: number;
  readonly token: bigint;
  readonly weight: number;
  readonly label: string;
}

/** A field of the holders key: `<from>|<ttl>|<token>|<weight>|<label>`, times in server ms. */
export function parseShare(share: string): Share | undefined {
  const match = /^(\d+)\|(\d+)\|(\d+)\|(\d+)\|([^]*)$/.exec(share);
  if (match === null) return undefined;
  const [, from, ttl, token, weight, label] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return { endsAt: Number(from) + Number(ttl), token: BigInt(token), weight: Number(weight), label };
}
