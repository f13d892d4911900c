/** The value below which the part `q` of all values lies; `NaN` of none. */
export function quantile(values: ArrayLike<number>, q: number): number {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const below = sorted[low] as number;
  const above = sorted[Math.min(low + 1, sorted.length - 1)] as number;
  return below + (above - below) * (at - low);
}

export function median(values: ArrayLike<number>): number {
  return quantile(values, 0.5);
}
