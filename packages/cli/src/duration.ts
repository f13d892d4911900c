import { UsageError } from './usage-error.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Milliseconds of a duration like `500ms`, `5s`, `2m` or `1h`.
 *
 * @throws UsageError
 */
export function readDuration(option: string, text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (factor === undefined) {
    throw new UsageError(`${option} takes a duration like 500ms, 5s, 2m or 1h, not "${text}"`);
  }
  return Math.round(Number(number) * factor);
}
