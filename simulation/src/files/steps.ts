/** What the coordinator of a schedule and its workers share: a few words for each worker, and the time. */
export const WORDS = 4;
/** The state of a worker: it runs, or waits at a call of the file system or for work. */
export const STATE = 0;
export const RUNS = 1;
export const WAITS = 2;
/** What it is told to do there. */
export const GO = 1;
/** Where it waits: an index of {@link CALLS}. */
export const CALL = 2;
/** A number for what it is told. */
export const SEED = 3;

export const PROCEED = 1;
/** No call of the process reaches the file system any more. */
export const KILL = 2;
/** The call fails, since the disk is full. */
export const FULL = 3;
/** The list is read in two parts: names that come or go between them may be in it or not. */
export const LATE = 4;
/** A part of the bytes is written. */
export const SHORT = 5;

/** Behind the words of all workers: whether the processes live, by {@link slotOf} their pids. */
export const MOST_WORKERS = 3;
export const ALIVE = MOST_WORKERS * WORDS;
export const MOST_PROCESSES = 32;
const FIRST_PID = 1_000;
export const pidOf = (slot: number): number => FIRST_PID + slot;
export const slotOf = (pid: number): number => pid - FIRST_PID;

/** The calls of the file system, each a step of its own; `work`: the worker waits for work. */
export const CALLS = [
  ...[
    'work',
    'readdirSync',
    'rest of a list',
    'renameSync',
    'unlinkSync',
    'rmdirSync',
    'openSync',
    'closeSync',
  ],
  ...['writeSync', 'readSync', 'mkdirSync', 'statSync', 'fstatSync', 'existsSync'],
] as const;
export type FileCall = (typeof CALLS)[number];

/** What a worker is asked to do. */
export type FileWork =
  | { readonly op: 'start'; readonly pid: number; readonly folder: string }
  | { readonly op: 'read'; readonly key: string }
  | {
      readonly op: 'write';
      readonly key: string;
      /** `undefined` deletes the record. */
      readonly value: string | undefined;
      readonly ifVersion: string | undefined;
      readonly heldUntilMs: number | undefined;
    }
  | { readonly op: 'list' }
  /** What waits for another turn of the event loop goes on. */
  | { readonly op: 'turn' };

/** A record, as a process has seen it; `absent`: there was none. */
export type Seen = 'absent' | { readonly version: string; readonly value: string };

/** What came of it. */
export type FileAnswer = {
  readonly turns: number;
} & (
  | { readonly status: 'done' | 'killed' }
  | { readonly status: 'failed'; readonly error: string; readonly code: string | undefined }
  | { readonly status: 'read' | 'conflict'; readonly seen: Seen }
  | { readonly status: 'written'; readonly version: string }
  | { readonly status: 'listed'; readonly values: readonly string[] }
);
