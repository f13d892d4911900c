/** What a process meets in its next transaction. */
export interface Interruption {
  readonly point: InterruptedAt;
  /** It stands still for so long, in milliseconds. */
  readonly ms: number;
  /** Then it is killed. */
  readonly kills: boolean;
}

/** `middle`: behind one of its statements. */
export type InterruptedAt = (typeof INTERRUPTED_AT)[number];
export const INTERRUPTED_AT = ['begun', 'middle', 'before commit', 'after commit'] as const;

export function inWords(point: InterruptedAt): string {
  switch (point) {
    case 'begun':
      return 'at the beginning of a transaction';
    case 'middle':
      return 'in the middle of a transaction';
    case 'before commit':
      return 'before it commits';
    case 'after commit':
      return 'after it has committed';
    default:
      return point satisfies never;
  }
}
