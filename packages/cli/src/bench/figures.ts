/** The measurements of a benchmark's row. Times are milliseconds. */
export interface Figures {
  readonly count: number;
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** The median in round trips of a ping. */
  readonly pings: number;
}

/** The times of one row, and how long it was measured. */
export interface Sample {
  readonly times: readonly number[];
  readonly tookMs: number;
}

export function figuresOf({ times, tookMs }: Sample, pingMs: number): Figures {
  const sorted = [...times].sort((a, b) => a - b);
  const medianMs = quantile(sorted, 0.5);
  return {
    count: sorted.length,
    perSecond: rounded((sorted.length / tookMs) * 1_000),
    medianMs: rounded(medianMs),
    p99Ms: rounded(quantile(sorted, 0.99)),
    pings: rounded(medianMs / pingMs),
  };
}

export function median(times: readonly number[]): number {
  return quantile(
    [...times].sort((a, b) => a - b),
    0.5,
  );
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Rounds to three digits, which are all that a measurement can tell. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
