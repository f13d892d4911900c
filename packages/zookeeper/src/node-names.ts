import type { LockMode } from '@locks/core';

/** The mode of an acquisition, as the first letter of its node's name: exclusive or shared. */
export type LockNodeKind = 'x' | 's';

/** The node of an acquisition, decoded from its name: `x.<acquisition id>.<sequence number>`. */
export interface LockNode {
  readonly name: string;
  readonly kind: LockNodeKind;
  readonly acquisitionId: string;
  readonly sequence: number;
}

// Ids contain no dot, so every name can be decoded. Sequence numbers are negative after an int32 wraps.
const PATTERN = /^([xs])\.([\w-]{1,64})\.(-?\d{9,10})$/;

/** Decodes the name of a node; `undefined` if the node is not an acquisition's. */
export function parseLockNode(name: string): LockNode | undefined {
  const [, kind, acquisitionId, digits] = PATTERN.exec(name) ?? [];
  if (kind === undefined || acquisitionId === undefined) return undefined;
  return { name, kind: kind as LockNodeKind, acquisitionId, sequence: Number(digits) };
}

/** The name without its sequence number, which the server appends. */
export function lockNodePrefix(mode: LockMode, acquisitionId: string): string {
  return `${kindOf(mode)}.${acquisitionId}.`;
}

/** The name of a shared node at the same position of the queue. */
export function sharedNameOf({ name }: LockNode): string {
  return `s${name.slice(1)}`;
}

function kindOf({ kind }: LockMode): LockNodeKind {
  switch (kind) {
    case 'exclusive':
      return 'x';
    case 'shared':
      return 's';
    case 'permit':
      throw new Error('ZooKeeper has no permits.');
    default:
      return kind satisfies never;
  }
}

export function modeOf({ kind }: LockNode): LockMode {
  return kind === 'x' ? { kind: 'exclusive' } : { kind: 'shared' };
}

/**
 * Orders sequence numbers, which are an int32 that wraps: -2147483648 follows 2147483647, so the number that is less than
 * 2³¹ steps behind comes first.
 */
export function compareSequences(a: number, b: number): number {
  return (a - b) | 0;
}

/** Begins the node of a resource, and no node of a `path`: no path is below a resource of another one. */
export const RESOURCE_MARK = ':';

/** Begins the path of a node, below the path of the locks, that is none of a resource: a name has no colon there. */
export const BESIDE_RESOURCES = `/${RESOURCE_MARK}:`;

/** Encodes any resource name as one path segment: distinct for distinct names, and readable. */
export function encodeName(resource: string): string {
  return RESOURCE_MARK + encodeURIComponent(resource);
}

/** Decodes a path segment to a resource name; `undefined` if the node is not a resource's. */
export function decodeName(segment: string): string | undefined {
  try {
    const name = decodeURIComponent(segment.slice(RESOURCE_MARK.length));
    return encodeName(name) === segment ? name : undefined;
  } catch {
    return undefined;
  }
}
