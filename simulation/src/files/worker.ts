// A process of the simulation of files, in a thread: it waits at each call of the file system until it is told to go on.
import type { StoredRecord } from '@locks/record-protocol';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { FileStore } from '../../../packages/file/src/file-store.ts';
import { SeededRandom } from '../kernel/seeded-random.ts';
import {
  ALIVE,
  CALL,
  CALLS,
  type FileAnswer,
  type FileCall,
  type FileWork,
  FULL,
  GO,
  KILL,
  LATE,
  SEED,
  type Seen,
  SHORT,
  slotOf,
  STATE,
  WAITS,
  WORDS,
} from './steps.ts';

interface WorkerData {
  readonly index: number;
  /** The sources of `@locks/file`. */
  readonly text: string;
  readonly words: Int32Array<SharedArrayBuffer>;
  /** The clock of the machine, in milliseconds. */
  readonly time: Float64Array<SharedArrayBuffer>;
  readonly port: MessagePort;
}

class Killed extends Error {}

const { index, text, words, time, port } = workerData as WorkerData;
const nodeRequire = createRequire(import.meta.url);
const evaluate = compileFunction(text, ['module', 'require', 'process', 'performance'], {
  filename: 'simulated-file.cjs',
}) as (...values: unknown[]) => void;
const WRITING = new Set<FileCall>(['openSync', 'writeSync', 'mkdirSync', 'renameSync']);

let store: FileStore | undefined;
let pid = 0;
let isKilled = false;
let drawn = 0;
/** What waits for another turn of the event loop. */
let turns: (() => void)[] = [];
const opened = new Set<number>();

function waitAt(call: FileCall): number {
  const at = index * WORDS;
  words[at + CALL] = CALLS.indexOf(call);
  Atomics.store(words, at + STATE, WAITS);
  Atomics.notify(words, at + STATE);
  for (;;) {
    Atomics.wait(words, at + GO, 0);
    const go = Atomics.exchange(words, at + GO, 0);
    // A notice may be late, and wake the next wait.
    if (go !== 0) return go;
  }
}

/** Waits at a call of the file system, and does what it is told there. */
function step<T>(call: FileCall, run: (go: number) => T): T {
  if (isKilled) throw new Killed();
  const go = waitAt(call);
  if (go === KILL) {
    isKilled = true;
    throw new Killed();
  }
  if (go === FULL && WRITING.has(call)) throw systemError('ENOSPC', call);
  return run(go);
}

const stepped =
  <Name extends Extract<FileCall, keyof typeof fs>>(name: Name) =>
  (...given: readonly unknown[]): unknown =>
    step(name, () => Reflect.apply(fs[name], fs, given));

const files = {
  ...Object.fromEntries(
    (
      [
        'renameSync',
        'unlinkSync',
        'rmdirSync',
        'readSync',
        'mkdirSync',
        'statSync',
        'fstatSync',
        'existsSync',
      ] as const
    ).map((name) => [name, stepped(name)]),
  ),
  constants: fs.constants,
  chmodSync: fs.chmodSync,
  fchmodSync: fs.fchmodSync,
  statfsSync: fs.statfsSync,
  openSync: (path: string, flags: string): number =>
    step('openSync', () => {
      const file = fs.openSync(path, flags);
      opened.add(file);
      return file;
    }),
  closeSync: (file: number): void =>
    step('closeSync', () => {
      opened.delete(file);
      fs.closeSync(file);
    }),
  writeSync: (file: number, value: Uint8Array, from: number, length: number, at: number): number =>
    step('writeSync', (go) =>
      fs.writeSync(file, value, from, go === SHORT ? Math.ceil(length / 2) : length, at),
    ),
  readdirSync: (path: string): string[] =>
    step('readdirSync', (go) => {
      const names = fs.readdirSync(path);
      return go === LATE ? mergedWithLater(path, names) : names;
    }),
  // Node deletes one after the other, too.
  rmSync: function removed(path: string, options: { readonly force?: boolean } = {}): void {
    const { unlinkSync, rmdirSync } = files as unknown as typeof fs;
    const unlessGone = <T>(act: () => T): T | undefined => {
      try {
        return act();
      } catch (error) {
        if (options.force === true && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    };
    try {
      unlessGone(() => unlinkSync(path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EISDIR') throw error;
      for (const name of unlessGone(() => files.readdirSync(path)) ?? []) removed(join(path, name), options);
      unlessGone(() => rmdirSync(path));
    }
  },
  readFileSync: (path: string): string => {
    const found = /^\/proc\/(\d+)\/stat$/.exec(path)?.[1];
    if (found === undefined || !isAlive(Number(found))) throw systemError('ENOENT', 'open');
    return `${found} (a b) S ${'0 '.repeat(18)}${found}`;
  },
  readlinkSync: (): string => 'pid:[1]',
};

/** A name that was there all the time is in the list. */
function mergedWithLater(path: string, before: readonly string[]): string[] {
  const random = new SeededRandom(words[index * WORDS + SEED] ?? 0);
  const after = step('rest of a list', () => {
    try {
      return fs.readdirSync(path);
    } catch {
      return [];
    }
  });
  return [...new Set([...before, ...after])].filter(
    (name) => (before.includes(name) && after.includes(name)) || random.chance(0.5),
  );
}

function isAlive(asked: number): boolean {
  return Atomics.load(words, ALIVE + slotOf(asked)) === 1;
}

const modules: Readonly<Record<string, unknown>> = {
  'node:fs': files,
  'node:crypto': {
    randomBytes: (size: number) => {
      drawn += 1;
      return Buffer.from(`${pid}${drawn}`.padStart(size * 2, '0'), 'hex');
    },
  },
  'node:timers/promises': {
    setImmediate: () => new Promise<void>((resolve) => turns.push(resolve)),
  },
};

const simulated = {
  platform: 'linux',
  versions: process.versions,
  hrtime: process.hrtime,
  get pid() {
    return pid;
  },
  getuid: () => process.getuid?.(),
  kill: (asked: number) => {
    if (!isAlive(asked)) throw systemError('ESRCH', 'kill');
    return true;
  },
};

function start(folder: string): void {
  for (const file of opened) fs.closeSync(file);
  opened.clear();
  [isKilled, drawn, turns] = [false, 0, []];
  const module = { exports: {} as { FileStore: typeof FileStore } };
  evaluate(module, (name: string) => modules[name] ?? nodeRequire(name), simulated, { now: () => time[0] });
  const clock = { boot: 'boot', bootIsExact: true, nowMicros: () => Math.floor((time[0] ?? 0) * 1_000) };
  store = new module.exports.FileStore({ folder, shared: false, watch: false, maxPollMs: 25 }, () => clock);
}

async function answer(work: FileWork): Promise<FileAnswer> {
  const files = store as FileStore;
  switch (work.op) {
    case 'start':
      pid = work.pid;
      start(work.folder);
      return { status: 'done', turns: 0 };
    case 'read': {
      const [record] = (await files.read([work.key])).records;
      return { status: 'read', seen: seenOf(record), turns: turns.length };
    }
    case 'write': {
      const { key, value, ifVersion, heldUntilMs } = work;
      const written = await files.write({
        key,
        value: value === undefined ? undefined : Buffer.from(value),
        ifVersion,
        isIdle: true,
        ...(heldUntilMs !== undefined && { heldUntilMs }),
      });
      if (written.status === 'conflict')
        return { status: 'conflict', seen: seenOf(written.present), turns: turns.length };
      return { status: 'written', version: String(written.version), turns: turns.length };
    }
    case 'list': {
      const values: string[] = [];
      for await (const { value } of files.list('')) values.push(Buffer.from(value).toString());
      return { status: 'listed', values, turns: turns.length };
    }
    case 'turn':
      for (const go of turns.splice(0)) go();
      await new Promise((resolve) => setImmediate(resolve));
      return { status: 'done', turns: turns.length };
    default:
      return work satisfies never;
  }
}

function seenOf(record: StoredRecord | 'absent' | undefined): Seen {
  if (record === undefined || typeof record === 'string') return 'absent';
  return { version: String(record.version), value: Buffer.from(record.value).toString() };
}

function systemError(code: string, call: string): Error {
  return Object.assign(new Error(`${code}: ${call}`), { code, syscall: call });
}

for (;;) {
  waitAt('work');
  const { message: work } = receiveMessageOnPort(port) as { readonly message: FileWork };
  let result: FileAnswer;
  try {
    result = await answer(work);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    result = { status: 'failed', error: message, code, turns: turns.length };
  }
  if (isKilled) result = { status: 'killed', turns: 0 };
  port.postMessage(result);
}
