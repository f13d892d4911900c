import { SimulatedRedisError } from './reply.ts';

// How Redis reads and writes numbers.

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const INFINITE = /^[+-]?inf(?:inity)?$/i;

export function readInteger(text: string): number {
  const number = Number(text);
  if (!/^(?:0|-?[1-9]\d*)$/.test(text) || Math.abs(number) >= 2 ** 63) {
    throw new SimulatedRedisError('ERR value is not an integer or out of range');
  }
  return number;
}

export function readDouble(text: string, what = 'value is not a valid float'): number {
  if (INFINITE.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (!DECIMAL.test(text)) throw new SimulatedRedisError(`ERR ${what}`);
  return Number(text);
}

/** `%.17g`, as Redis writes scores, and the numbers that a script passes to a command. */
export function formatDouble(value: number): string {
  if (Object.is(value, -0)) return '-0';
  if (Number.isSafeInteger(value)) return String(value);
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const size = Math.abs(value);
  // JavaScript and C change to exponents at other sizes.
  const [mantissa = '', power] =
    size < 1e-4 || size >= 1e17 ? value.toExponential(16).split('e') : [value.toPrecision(17)];
  const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
  if (power === undefined) return short;
  return `${short}e${power.startsWith('-') ? '-' : '+'}${power.slice(1).padStart(2, '0')}`;
}

/** What a range of scores begins or ends with: `5`, `(5` without 5 itself, `-inf`. */
export function readBound(text: string): { readonly score: number; readonly isOpen: boolean } {
  const isOpen = text.startsWith('(');
  return { score: readDouble(isOpen ? text.slice(1) : text, 'min or max is not a float'), isOpen };
}
