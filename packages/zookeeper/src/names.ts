import type { LockMode } from '@locks/core';

/** The kinds of acquisitions, by the first letter of their nodes. */
export type Seat = 'x' | 's';

/** What the name of an acquisition's node says: `x.<acquisition id>.<sequence number>`. */
export interface SeatName {
  readonly name: string;
  readonly seat: Seat;
  readonly acquisitionId: string;
  readonly sequence: number;
}

// Ids have no dot, so the name can be read back whatever they look like. Negative after the wrap of an int32.
const PATTERN = /^([xs])\.([\w-]{1,64})\.(-?\d{9,10})$/;

/** `undefined` for a node that is none of ours. */
export function parseSeat(name: string): SeatName | undefined {
  const [, seat, acquisitionId, digits] = PATTERN.exec(name) ?? [];
  if (seat === undefined || acquisitionId === undefined) return undefined;
  return { name, seat: seat as Seat, acquisitionId, sequence: Number(digits) };
}

/** The name without its sequence number, which the server appends. */
export function seatPrefix(mode: LockMode, acquisitionId: string): string {
  return `${seatOf(mode)}.${acquisitionId}.`;
}

/** The same place in the line, as a reader's. */
export function asShared({ name }: SeatName): string {
  return `s${name.slice(1)}`;
}

export function seatOf({ kind }: LockMode): Seat {
  return kind === 'exclusive' ? 'x' : 's';
}

export function modeOf(seat: Seat): LockMode {
  return seat === 'x' ? { kind: 'exclusive' } : { kind: 'shared' };
}

/**
 * Orders sequence numbers, which are an int32 that wraps: the one that is less than 2³¹ steps behind comes first.
 * 2147483647 is followed by -2147483648.
 */
export function compareSequences(a: number, b: number): number {
  return (a - b) | 0;
}

/** One path segment for any name of a resource: distinct for distinct names, and readable. */
export function encodeName(resource: string): string {
  const encoded = encodeURIComponent(resource);
  // The segments "." and ".." mean something else.
  return encoded.startsWith('.') ? `%2E${encoded.slice(1)}` : encoded;
}

/** `undefined` for a node that is none of ours. */
export function decodeName(segment: string): string | undefined {
  try {
    const name = decodeURIComponent(segment);
    return encodeName(name) === segment ? name : undefined;
  } catch {
    return undefined;
  }
}
