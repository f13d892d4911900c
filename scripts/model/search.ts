import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../checks/command.ts';
import { root } from '../launcher/root.mjs';
import type { ModelRun } from './runs.ts';

export interface SearchResult {
  /** What the search violates; `undefined` where nothing is wrong. */
  readonly violation: string | undefined;
  readonly states: number;
  readonly depth: number;
  readonly seconds: number;
  /** The events of the counterexample, one a line, where there is one. */
  readonly trace: string;
}

const MODEL = join(root, 'model/lock.pml');
/** No search of `npm run model -- --full` needs as much. */
const MEMORY_MB = 8_000;
/** The largest scope takes twenty minutes on a machine of its own, and hours beside much other work. */
const LONGEST_MS = 14_400_000;
/** Slots of the table of hashes, as a power of two: one for each state or more. */
const HASH_SLOTS = 28;
const FLAGS: Readonly<Record<ModelRun['search'], readonly string[]>> = {
  states: ['-DSAFETY', '-DNOREDUCE'],
  cycles: ['-DNP', '-DNOREDUCE'],
};

/**
 * Searches all states of the model within a scope.
 *
 * @param planted - the number of a planted error: the search then ends at the shortest counterexample that it finds, or at the first one
 *   where hashes are kept
 * @throws Error when a tool fails, or the search is not exhaustive
 */
export async function searchModel(
  { defines, search, isLarge = false, isHashed = false }: Omit<ModelRun, 'name'>,
  planted = 0,
): Promise<SearchResult> {
  const folder = mkdtempSync(join(tmpdir(), 'locks-model-'));
  try {
    cpSync(MODEL, join(folder, 'lock.pml'));
    const macros = Object.entries({ ...defines, PLANTED: planted }).map(
      ([name, value]) => `-D${name}=${value}`,
    );
    const isShort = planted > 0 && !isHashed;
    const breadthFirst = isShort && search === 'states' ? ['-DBFS'] : [];
    // A search in breadth keeps no variables outside the states.
    if (breadthFirst.length > 0) macros.push('-Dhidden=');
    await tool(folder, 'spin', [...macros, '-a', 'lock.pml']);
    const compiler = [
      isLarge ? '-O2' : '-O0',
      '-w',
      `-DMEMLIM=${MEMORY_MB}`,
      ...FLAGS[search],
      ...breadthFirst,
      ...(isHashed ? ['-DHC4'] : []),
    ];
    await tool(folder, 'gcc', [...compiler, '-o', 'pan', 'pan.c']);
    const start = performance.now();
    const options = search === 'cycles' ? ['-l'] : ['-E'];
    if (isHashed) options.push(`-w${planted > 0 ? HASH_SLOTS - 4 : HASH_SLOTS}`);
    const output = await tool(folder, join(folder, 'pan'), ['-m200000', ...options]);
    const seconds = (performance.now() - start) / 1_000;
    if (/Search not completed|max search depth too small/.test(output) && !/errors: [1-9]/.test(output))
      throw new Error(`the search was not exhaustive:\n${output}`);
    const violation = /errors: [1-9]/.test(output)
      ? (/^pan:\d+: (.*?)(?: \(at depth \d+\))?$/m.exec(output)?.[1] ?? 'an unknown error')
      : undefined;
    const trace = existsSync(join(folder, 'lock.pml.trail'))
      ? eventsIn(await tool(folder, 'spin', [...macros, '-t', '-T', 'lock.pml']))
      : '';
    // From a hundred million on with a fraction and a power of ten.
    const states = Number(/^\s*([\d.e+]+) states, stored/m.exec(output)?.[1] ?? Number.NaN);
    const depth = Number(/depth reached (\d+)/.exec(output)?.[1] ?? Number.NaN);
    if (violation === undefined && !(states > 0)) throw new Error(`no figures:\n${output}`);
    return { violation, states, depth, seconds, trace };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The assertion of the model in words: the comment above the inline that has it. */
export function inWords(violation: string): string {
  if (violation.includes('non-progress')) return 'a run without an end: somebody waits for ever (§7.3)';
  if (violation.includes('raised'))
    return 'a lease begins whose grant is no longer the newest in the store (§6.1, §11.1)';
  if (violation.includes('lease')) return 'two believe at once that they hold (§11.1, §8.2)';
  if (violation.includes('queued')) return 'a live waiter in the queue is passed over (§7.3, §7.4)';
  if (violation.includes('phase')) return 'a live waiter was never served (§7.3)';
  return violation;
}

export function modelLines(): number {
  return readFileSync(MODEL, 'utf8').split('\n').length - 1;
}

/** The lines that the model prints, without those of the tool. */
function eventsIn(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  return lines.filter((line) => /^(process|store|network|time) |START OF CYCLE/.test(line)).join('\n');
}

async function tool(folder: string, command: string, args: readonly string[]): Promise<string> {
  const { ok, output } = await runCommand(command, args, { cwd: folder, limitMs: LONGEST_MS });
  // `pan` and `spin -t` end with a code of their own when they show a counterexample.
  if (!ok && !/errors: [1-9]|spin: trail ends|spin: .*assertion violated/.test(output))
    throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
  return output;
}
