import { parseArgs } from 'node:util';
import { labBackends } from './lab-backends.ts';
import { NEMESES, type NemesisName } from './nemeses.ts';
import { peers } from './peers/peers.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

export interface LabArguments {
  readonly backends: readonly string[];
  /** For each backend. */
  readonly seconds: number;
  readonly seed: number;
  readonly nemeses: readonly NemesisName[];
  readonly workloads: readonly Workload[];
  readonly json: string | undefined;
  readonly histories: string | undefined;
  readonly edn: string | undefined;
  /** Where the traces of the workers go, for `locks verify`. */
  readonly trace: string | undefined;
}

/** Those of this repository, and other libraries. */
const BACKENDS = [...Object.keys(labBackends), ...Object.keys(peers)];

const OPTIONS = {
  minutes: { type: 'string', default: '1' },
  seed: { type: 'string', default: String(1 + (Date.now() % 1_000_000)) },
  nemesis: { type: 'string', default: NEMESES.join(',') },
  workload: { type: 'string', default: WORKLOADS.join(',') },
  json: { type: 'string' },
  histories: { type: 'string' },
  edn: { type: 'string' },
  trace: { type: 'string' },
} as const;

/** The arguments of `npm run lab`, or what is wrong with them. */
export function parseLabArguments(args: readonly string[]): LabArguments | string {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    return (error as Error).message;
  }
  const { values, positionals: backends } = parsed;
  const seconds = Number(values.minutes) * 60;
  const seed = Number(values.seed);
  if (backends.length === 0) return `Which backends? There are: ${BACKENDS.join(', ')}.`;
  if (!(seconds > 0 && seconds <= 86_400))
    return `--minutes must be a number from 0 to 1440, not ${values.minutes}.`;
  if (!Number.isSafeInteger(seed) || seed < 0) return `--seed must be a whole number, not ${values.seed}.`;
  const [nemeses, workloads] = [values.nemesis.split(','), values.workload.split(',')];
  const unknown =
    firstUnknown('backend', backends, BACKENDS) ??
    firstUnknown('nemesis', nemeses, NEMESES) ??
    firstUnknown('workload', workloads, WORKLOADS);
  if (unknown !== undefined) return unknown;
  return {
    ...{ backends, seconds, seed, json: values.json, histories: values.histories, edn: values.edn },
    trace: values.trace,
    nemeses: nemeses as NemesisName[],
    workloads: workloads as Workload[],
  };
}

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS });
}

function firstUnknown(what: string, given: readonly string[], known: readonly string[]): string | undefined {
  const unknown = given.find((one) => !known.includes(one));
  return unknown === undefined
    ? undefined
    : `There is no ${what} ${JSON.stringify(unknown)}. There are: ${known.join(', ')}.`;
}
