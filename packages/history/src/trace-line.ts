import { HistoryError, type HistoryPosition, show } from './history-error.ts';
import { type HistoryMode, isMode } from './history-event.ts';

/** An acquisition in a trace. */
export interface TraceAcquisition {
  readonly name: string;
  readonly id?: string;
  readonly mode?: HistoryMode;
  readonly ttlMs?: number;
  /** The fencing token in decimal digits. */
  readonly token?: string;
  readonly steal?: true;
  /** The acquisition whose hold a transfer or an adoption takes. */
  readonly adopts?: string;
}

/** The answer of a store for one acquisition. */
export interface TraceOutcome {
  readonly status: string;
  readonly reason?: string;
  readonly token?: string;
  /** On the clock of `at`. */
  readonly countedFrom?: number;
  readonly validForMs?: number;
  readonly id?: string;
}

/** What the checker reads of the capabilities of a backend. */
export interface TraceCapabilities {
  readonly tenure: 'lease' | 'session';
  readonly order: 'fifo' | 'cohort' | 'none';
  readonly fencing: 'durable' | 'volatile' | 'none';
  /** For how long after its grant a lease is passed on, also after an unreported steal (§18.6). */
  readonly cohort?: { readonly withinMs: number };
}

/** `time` is the monotonic clock of the machine, `at` that of the manager, both in milliseconds. */
interface OfClient {
  readonly time: number;
  /** The number of the manager in its process. */
  readonly client: number;
  readonly at: number;
}

/** A line of a trace: `docs/traces.md` of the repository has the format. */
export type TraceLine =
  | {
      readonly step: 'begin';
      readonly version: 1;
      readonly process: string;
      /** The machine whose clock `time` is. */
      readonly machine: string;
      readonly time: number;
      /** The wall clock at the same moment, in milliseconds since 1970. */
      readonly wall: number;
    }
  | { readonly step: 'clock'; readonly time: number; readonly wall: number }
  | {
      readonly step: 'client';
      readonly time: number;
      readonly client: number;
      readonly backend: string;
      /** Clients with the same text share their locks. */
      readonly store: string;
      readonly capabilities: TraceCapabilities;
    }
  | (OfClient & {
      readonly step: 'call';
      readonly call: number;
      readonly method: string;
      readonly acquisitions: readonly TraceAcquisition[];
      readonly enqueue?: boolean;
    })
  | (OfClient & {
      readonly step: 'answer';
      readonly call: number;
      readonly outcomes: readonly TraceOutcome[];
    })
  | (OfClient & {
      readonly step: 'believes';
      readonly acquisition: TraceAcquisition;
      /** On the clock of `at`; absent: without an end. */
      readonly until?: number;
      /** The same moment on the clock of `time`. */
      readonly endsAt?: number;
      readonly renews: boolean;
    })
  | (OfClient & {
      readonly step: 'ends';
      readonly acquisition: TraceAcquisition;
      readonly why: string;
      readonly until?: number;
      readonly endsAt?: number;
    })
  | (OfClient & { readonly step: 'gives-up'; readonly acquisition: TraceAcquisition })
  | (OfClient & {
      readonly step: 'enters' | 'leaves';
      readonly acquisition: TraceAcquisition;
      readonly scope: number;
      readonly within: number;
    })
  | (OfClient & { readonly step: 'closes' })
  /** Somebody knows that the store lost data between `time` and `until`: what was granted before or in between proves nothing. */
  | { readonly step: 'data-lost'; readonly time: number; readonly until: number }
  | { readonly step: 'dropped'; readonly time: number; readonly lines: number }
  | { readonly step: 'end'; readonly time: number };

const OF_CLIENT = ['time', 'client', 'at'];
/** The properties of each step that must be there. */
const PROPERTIES: Readonly<Record<TraceLine['step'], readonly string[]>> = {
  begin: ['version', 'process', 'machine', 'time', 'wall'],
  clock: ['time', 'wall'],
  client: ['time', 'client', 'backend', 'store', 'capabilities'],
  call: [...OF_CLIENT, 'call', 'method', 'acquisitions'],
  answer: [...OF_CLIENT, 'call', 'outcomes'],
  believes: [...OF_CLIENT, 'acquisition', 'renews'],
  ends: [...OF_CLIENT, 'acquisition', 'why'],
  'gives-up': [...OF_CLIENT, 'acquisition'],
  enters: [...OF_CLIENT, 'acquisition', 'scope', 'within'],
  leaves: [...OF_CLIENT, 'acquisition', 'scope', 'within'],
  closes: OF_CLIENT,
  'data-lost': ['time', 'until'],
  dropped: ['time', 'lines'],
  end: ['time'],
};
const TEXTS = new Set(['process', 'machine', 'backend', 'store', 'method', 'why']);
const NUMBERS = new Set(
  'version time wall client at call scope within lines until endsAt countedFrom validForMs ttlMs'.split(' '),
);
const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  tenure: ['lease', 'session'],
  order: ['fifo', 'cohort', 'none'],
  fencing: ['durable', 'volatile', 'none'],
};

/** Checks one line by itself. @throws HistoryError */
export function checkTraceLine(value: unknown, position: HistoryPosition): TraceLine {
  const refuse = (problem: string): never => {
    throw new HistoryError(problem, position);
  };
  if (!isObject(value)) return refuse(`a line must be an object, not ${show(value)}.`);
  const { step } = value;
  if (typeof step !== 'string' || !Object.hasOwn(PROPERTIES, step))
    return refuse(`step must be one of ${Object.keys(PROPERTIES).join(', ')}, not ${show(step)}.`);
  for (const name of PROPERTIES[step as TraceLine['step']])
    if (value[name] === undefined) refuse(`${step} has no ${name}.`);
  checkProperties(value, refuse);
  if (value['version'] !== undefined && value['version'] !== 1)
    refuse(`the version of the format must be 1, not ${show(value['version'])}.`);
  return value as unknown as TraceLine;
}

function checkProperties(value: Readonly<Record<string, unknown>>, refuse: (problem: string) => never): void {
  for (const [name, given] of Object.entries(value)) {
    if (TEXTS.has(name) && (typeof given !== 'string' || given === ''))
      refuse(`${name} must be a text, not ${show(given)}.`);
    if (NUMBERS.has(name) && !Number.isFinite(given)) refuse(`${name} must be a number, not ${show(given)}.`);
    if (name === 'token' && (typeof given !== 'string' || !/^\d+$/.test(given)))
      refuse(`token must be a text of decimal digits, not ${show(given)}.`);
    if (name === 'mode' && !isMode(given)) refuse(`mode must be that of a lock, not ${show(given)}.`);
    if (name === 'acquisition') {
      if (!isObject(given)) refuse(`acquisition must be an object, not ${show(given)}.`);
      else if (typeof given['id'] !== 'string') refuse('an acquisition of this step needs an id.');
    }
    const list = name === 'acquisitions' || name === 'outcomes';
    if (list && !(Array.isArray(given) && given.every(isObject)))
      refuse(`${name} must be a list of objects, not ${show(given)}.`);
    const parts = list ? (given as Record<string, unknown>[]) : name === 'acquisition' ? [given] : [];
    for (const part of parts as Record<string, unknown>[]) {
      if (name !== 'outcomes' && typeof part['name'] !== 'string') refuse('an acquisition needs a name.');
      if (name === 'outcomes' && typeof part['status'] !== 'string') refuse('an outcome needs a status.');
      checkProperties(part, refuse);
    }
    if (name !== 'capabilities') continue;
    for (const [capability, known] of Object.entries(CAPABILITIES)) {
      const declared = isObject(given) ? given[capability] : undefined;
      if (!known.includes(declared as string))
        refuse(`capabilities.${capability} must be one of ${known.join(', ')}, not ${show(declared)}.`);
    }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
