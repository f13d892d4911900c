import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import type { LockManager } from '@locks/core';
import { type Figures, figuresOf, median, type Sample } from '../bench/figures.ts';
import { CONTENDERS, contended, handOff, ping, type RowPlan, uncontended } from '../bench/rows.ts';
import { type OptionValues, textOf } from '../command-line.ts';
import { EXIT } from '../exit-codes.ts';
import type { ManagerPair } from '../manager-pair.ts';
import { UsageError } from '../usage-error.ts';
import type { Write } from './look.ts';

const DEFAULT_SECONDS = 60;
const MOST_SECONDS = 3_600;

/** The rows, with their shares of the time. */
const ROWS = {
  ping: [ping, 0.1],
  uncontended: [uncontended, 0.3],
  contended: [contended, 0.3],
  handOff: [handOff, 0.3],
} as const satisfies Record<string, readonly [row: (plan: RowPlan) => Promise<Sample>, share: number]>;

type RowName = keyof typeof ROWS;
const ROW_NAMES = Object.keys(ROWS) as readonly RowName[];

const TITLES: Readonly<Record<RowName, string>> = {
  ping: 'ping',
  uncontended: 'acquire and release, nobody else wants it',
  contended: `acquire and release, ${CONTENDERS} want it`,
  handOff: 'hand-off, from the release to the next grant',
};

/** @throws UsageError */
export function readBenchSeconds(values: OptionValues): number {
  const text = textOf(values, 'seconds') ?? String(DEFAULT_SECONDS);
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds >= 1 && seconds <= MOST_SECONDS) return seconds;
  throw new UsageError(`--seconds takes a whole number from 1 to ${MOST_SECONDS}, not "${text}"`);
}

/** Measures the store with locks of a random name, and leaves none behind. Gives the exit code. */
export async function bench(
  pair: ManagerPair,
  seconds: number,
  json: boolean,
  write: Write,
): Promise<number> {
  const interruption = new Interruption();
  const prefix = `locks-bench-${randomUUID()}`;
  try {
    const samples = {} as Record<RowName, Sample>;
    for (const row of ROW_NAMES) {
      const [measure, share] = ROWS[row];
      const forMs = seconds * 1_000 * share;
      samples[row] = await measure({
        pair,
        name: `${prefix}-${row}`,
        forMs,
        signal: interruption.signal,
      });
    }
    const pingMs = median(samples.ping.times);
    const figures = Object.fromEntries(
      ROW_NAMES.map((row) => [row, figuresOf(samples[row], pingMs)]),
    ) as Record<RowName, Figures>;
    write(json ? `${JSON.stringify({ seconds, ...figures })}\n` : `${tableOf(figures)}\n`);
    return EXIT.ok;
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
    return EXIT.signal + interruption.number;
  } finally {
    await releaseAll(pair.one, prefix);
    interruption.close();
  }
}

/** Ends the holds that an interrupted row may have left. */
async function releaseAll(locks: LockManager, prefix: string): Promise<void> {
  const { features } = locks.capabilities;
  if (!features.includes('force-release')) return;
  for (const row of ROW_NAMES) {
    const name = `${prefix}-${row}`;
    if (await locks.isLocked(name)) await locks.forceRelease(name);
  }
}

function tableOf(figures: Readonly<Record<RowName, Figures>>): string {
  const header = ['', 'per second', 'median', 'p99', 'in pings'];
  const rows = ROW_NAMES.map((row) => {
    const { perSecond, medianMs, p99Ms, pings } = figures[row];
    return [TITLES[row], String(perSecond), `${medianMs} ms`, `${p99Ms} ms`, String(pings)];
  });
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}

/** A signal that ends the measurement; a second one ends the process. */
class Interruption {
  /** The number of the signal that came; 0 before. */
  number = 0;
  readonly #controller = new AbortController();
  readonly #listeners = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((name) => {
    const listener = (): void => {
      this.number = constants.signals[name];
      this.close();
      this.#controller.abort();
    };
    process.on(name, listener);
    return [name, listener] as const;
  });

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  close(): void {
    for (const [name, listener] of this.#listeners) process.off(name, listener);
  }
}
