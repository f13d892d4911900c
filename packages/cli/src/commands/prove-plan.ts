import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type OptionValues, textOf } from '../command-line.ts';
import { UsageError } from '../usage-error.ts';

const MOST_MINUTES = 1_440;
const LEAST_MINUTES = 0.05;

export interface ProvePlan {
  readonly minutes: number;
  readonly seed: number | undefined;
  /** The names of the faults, as given. */
  readonly faults: readonly string[] | undefined;
  /** The files of the report. */
  readonly json: string | undefined;
  readonly html: string | undefined;
  /** The URL of a module that opens other locks than those of a store. */
  readonly module: string | undefined;
}

/** @throws UsageError */
export function readProvePlan(values: OptionValues): ProvePlan {
  const [json, html, backend] = ['json', 'html', 'backend'].map((option) => textOf(values, option));
  for (const [option, file] of Object.entries({ '--json': json, '--html': html }))
    checkWritable(option, file);
  if (backend !== undefined && !existsSync(backend))
    throw new UsageError(`--backend: there is no file ${backend}`);
  return {
    minutes: readNumber('--minutes', textOf(values, 'minutes') ?? '5', LEAST_MINUTES, MOST_MINUTES),
    seed: readSeed(textOf(values, 'seed')),
    faults: textOf(values, 'faults')?.split(','),
    ...{ json, html },
    module: backend === undefined ? undefined : pathToFileURL(resolve(backend)).href,
  };
}

function readSeed(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seed = readNumber('--seed', text, 0, 2 ** 32 - 1);
  if (!Number.isInteger(seed)) throw new UsageError(`--seed takes a whole number, not "${text}"`);
  return seed;
}

function readNumber(option: string, text: string, least: number, most: number): number {
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new UsageError(`${option} takes a number from ${least} to ${most}, not "${text}"`);
}

/** The report is written after minutes: a folder that is not there is told of before them. */
function checkWritable(option: string, file: string | undefined): void {
  if (file === undefined) return;
  try {
    accessSync(dirname(resolve(file)), constants.W_OK);
  } catch (error) {
    throw new UsageError(`${option}: ${file} cannot be written: ${(error as Error).message}`);
  }
}
