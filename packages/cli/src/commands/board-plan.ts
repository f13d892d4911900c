import { type OptionValues, textOf } from '../command-line.ts';
import { readDuration } from '../duration.ts';
import { UsageError } from '../usage-error.ts';

const DEFAULT_EVERY_MS = 1_000;
const LEAST_EVERY_MS = 50;

export interface BoardPlan {
  readonly prefix: string;
  readonly host: string;
  readonly port: number;
  readonly everyMs: number;
  readonly mayRelease: boolean;
}

/** @throws UsageError */
export function readBoardPlan(prefix: string, values: OptionValues): BoardPlan {
  const [host = '127.0.0.1', port = '0', every] = ['host', 'port', 'every'].map((name) =>
    textOf(values, name),
  );
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new UsageError(`--port takes a number from 0 to 65535, not "${port}"`);
  const everyMs = every === undefined ? DEFAULT_EVERY_MS : readDuration('--every', every);
  if (everyMs < LEAST_EVERY_MS) throw new UsageError(`--every takes at least ${LEAST_EVERY_MS}ms`);
  return { prefix, host, port: Number(port), everyMs, mayRelease: values['allow-release'] === true };
}
