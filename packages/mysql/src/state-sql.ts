const STEP_BYTES = 4_096;
/** The length below which a state is written whole. */
const SHORT_BYTES = 512;

/**
 * The SQL of a new state: only the changed part is sent, so that a hand-off in a long queue is a short statement. `from` is the
 * content of the column `state` of the row that is written, if that is known.
 */
export function stateSql(from: Buffer | undefined, to: Buffer): string {
  if (from === undefined || to.length < SHORT_BYTES) return hex(to);
  const most = Math.min(from.length, to.length);
  const before = alike(most, (start, end) => compare(from, to, start, end, 0));
  const shift = to.length - from.length;
  const after = alike(most - before, (start, end) =>
    compare(from, to, from.length - end, from.length - start, shift),
  );
  const changed = to.subarray(before, to.length - after);
  if (changed.length > to.length / 2) return hex(to);
  return `CONCAT(LEFT(state, ${before}), ${hex(changed)}, RIGHT(state, ${after}))`;
}

export function hex(value: Buffer): string {
  return `X'${value.toString('hex')}'`;
}

/** Counts the equal bytes from the start on, at most `most`. Compares in steps, and by halves in the step that differs. */
function alike(most: number, isSame: (start: number, end: number) => boolean): number {
  let start = 0;
  for (let step = STEP_BYTES; step >= 1; step = Math.floor(step / 2)) {
    while (start + step <= most && isSame(start, start + step)) start += step;
  }
  return start;
}

function compare(from: Buffer, to: Buffer, start: number, end: number, shift: number): boolean {
  return from.compare(to, start + shift, end + shift, start, end) === 0;
}
