import { Buffer } from 'node:buffer';
import type { LockMode } from '../backend/types.ts';

/** The longest label, in UTF-8 bytes. */
const MAX_BYTES = 256;

/** What a hold tells of a wait inside its `run`. */
export interface ToldWait {
  /** The identity of the wait. The younger of two waits has the greater one, in the order of their texts. */
  readonly id: string;
  /** How the lock is to be acquired. */
  readonly mode: LockMode;
  /** The name of the lock, which is in the store that tells. */
  readonly name: string;
}

/** The label of a hold whose code waits for a lock of another store, which tells the rest. */
export const ELSEWHERE = '1 elsewhere';

/** The identity of a wait that began at a time of the wall clock: the time, and what tells it from others of that time. */
export function waitId(startedAt: number, acquisitionId: string): string {
  return `${Math.max(0, Math.floor(startedAt)).toString(36).padStart(9, '0')}.${acquisitionId.slice(0, 20)}`;
}

/** The label that tells of a wait; `undefined` where the name of the lock is too long for one. */
export function labelOf({ id, mode, name }: ToldWait): string | undefined {
  const text = `1 ${id} ${modeText(mode)} ${name.replace(/[%\p{Cc}]/gu, encodeURIComponent)}`;
  return Buffer.byteLength(text) <= MAX_BYTES ? text : undefined;
}

/** The wait that a label tells of; `undefined` where it tells of none, as one that a later version wrote. */
export function toldBy(label: string | undefined): ToldWait | undefined {
  const [, id, how, encoded] = /^1 ([^ ]+) (x|s|p\d+\/\d+) (.+)$/u.exec(label ?? '') ?? [];
  if (id === undefined || how === undefined || encoded === undefined) return undefined;
  try {
    return { id, mode: modeOf(how), name: decodeURIComponent(encoded) };
  } catch {
    return undefined;
  }
}

function modeText(mode: LockMode): string {
  switch (mode.kind) {
    case 'exclusive':
      return 'x';
    case 'shared':
      return 's';
    case 'permit':
      return `p${mode.weight}/${mode.limit}`;
    default:
      return mode satisfies never;
  }
}

function modeOf(text: string): LockMode {
  if (text === 'x') return { kind: 'exclusive' };
  if (text === 's') return { kind: 'shared' };
  const [weight, limit] = text.slice(1).split('/').map(Number) as [number, number];
  return { kind: 'permit', weight, limit };
}
