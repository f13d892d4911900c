import { checkTrace, readTrace, type ReadTrace, type TraceVerdict } from '@locks/history';
import type { OptionValues } from '../command-line.ts';
import { textOf } from '../command-line.ts';
import { readDuration } from '../duration.ts';
import { EXIT } from '../exit-codes.ts';
import { shown } from '../foreign-text.ts';
import { UsageError } from '../usage-error.ts';
import type { Write } from './look.ts';

const MOST_SHOWN = 50;

/** Holds traces to the specification, and tells what was checked. Gives the exit code. */
export function verify(files: readonly string[], values: OptionValues, write: Write): number {
  if (files.length === 0) throw new UsageError('verify: the files of the trace are missing');
  const duration = (option: string): number | undefined => {
    const text = textOf(values, option);
    return text === undefined ? undefined : readDuration(`--${option}`, text);
  };
  const options = { skewMs: duration('skew'), idleMs: duration('idle') };
  const trace = readTrace(...files);
  const verdict = checkTrace(trace, options);
  if (values['json'] === true) {
    const { malformed, truncated } = trace;
    write(`${JSON.stringify({ ...verdict, malformed, truncated })}\n`);
  } else for (const line of inWords(verdict, trace)) write(`${shown(line)}\n`);
  return verdict.violations.length + trace.malformed.length > 0 ? EXIT.violated : EXIT.ok;
}

function* inWords(verdict: TraceVerdict, { malformed, truncated }: ReadTrace): Generator<string> {
  const { lines, processes, machines, acquisitions, beliefs, skewMs, rules, violations } = verdict;
  const skew = machines > 1 ? `, whose clocks may be ${skewMs} ms apart` : '';
  yield `${lines} lines of ${counted(processes, 'process', 'processes')} on ${counted(machines, 'machine', 'machines')}${skew}`;
  yield `${counted(acquisitions, 'acquisition', 'acquisitions')}, of which ${beliefs} held`;
  for (const { clause, what, checked, violations: broken } of rules) {
    if (checked === 0) continue;
    yield `${broken === 0 ? 'kept    ' : 'violated'} ${clause.padEnd(6)} ${what}: ${broken === 0 ? '' : `${broken} of `}${checked}`;
  }
  const unchecked = rules.filter(({ checked }) => checked === 0).map(({ rule }) => rule);
  if (unchecked.length > 0) yield `never checked: ${unchecked.join(', ')}`;
  for (const { file = '', line } of truncated)
    yield `${file}:${line}: the line ends too early, as of a killed process`;
  for (const { file = '', line, problem } of malformed)
    yield `${file}:${line}: not a line of a trace: ${problem}`;
  for (const { clause, sentence, lines: places } of violations.slice(0, MOST_SHOWN)) {
    yield `${clause} ${sentence}`;
    for (const { file = '', line } of places) yield `  ${file}:${line}`;
  }
  if (violations.length > MOST_SHOWN) yield `and ${violations.length - MOST_SHOWN} more violations`;
  yield violations.length === 0
    ? 'no rule was broken'
    : counted(violations.length, 'violation', 'violations');
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
