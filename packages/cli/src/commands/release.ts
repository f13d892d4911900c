import { createInterface } from 'node:readline/promises';
import type { LockManager } from '@locks/core';
import { type OptionValues, textOf } from '../command-line.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine, shown } from '../foreign-text.ts';
import { UsageError } from '../usage-error.ts';
import type { Write } from './look.ts';
import { detailsOf } from './states.ts';

export interface ReleasePlan {
  readonly name: string;
  /** The acquisition whose hold is ended; `undefined`: all holders. */
  readonly acquisitionId: string | undefined;
  readonly asks: boolean;
}

/** @throws UsageError */
export function readReleasePlan(name: string, values: OptionValues, isTerminal: boolean): ReleasePlan {
  const id = textOf(values, 'id');
  const everyone = values['everyone'] === true;
  if ((id === undefined) !== everyone) {
    throw new UsageError('release: give --id ID (`locks show NAME` has it), or --everyone');
  }
  const yes = values['yes'] === true;
  if (!yes && !isTerminal) throw new UsageError('release: nobody is there to be asked: give --yes');
  return { name, acquisitionId: id, asks: !yes };
}

/** Ends the hold, where `asks` is set after a confirmation at the terminal. Gives the exit code. */
export async function release(
  locks: LockManager,
  { name, acquisitionId, asks }: ReleasePlan,
  json: boolean,
  write: Write,
): Promise<number> {
  if (asks) {
    process.stderr.write(`${detailsOf(await locks.inspect(name))}\n`);
    if (!(await confirmed(shown(`End ${acquisitionId ?? 'every hold'} of ${name}?`)))) return EXIT.nothing;
  }
  const ended = await locks.forceRelease(name, acquisitionId === undefined ? {} : { acquisitionId });
  if (json) write(jsonLine({ name, released: ended }));
  else if (ended.length === 0) write('nobody held it\n');
  else for (const { acquisitionId: id, label } of ended) write(`${shown(`released ${id} ${label ?? ''}`)}\n`);
  return ended.length === 0 ? EXIT.nothing : EXIT.ok;
}

async function confirmed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
