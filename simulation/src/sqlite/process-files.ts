import { constants, statSync } from 'node:fs';
import type { DatabaseSyncOptions } from 'node:sqlite';
import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { ProcessMachine } from '../process/process-machine.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { LOCK_FILE, sqliteError, systemError } from './file-failures.ts';
import { type InterruptedAt, type Interruption, inWords } from './interruption.ts';
import { type ConnectionOwner, SimulatedDatabase } from './simulated-database.ts';

export interface Watch {
  readonly path: string;
  readonly tell: (event: 'change' | 'rename') => void;
}

/** What the processes of a machine share. */
export interface SharedMachine {
  readonly world: World;
  readonly random: SeededRandom;
  readonly platform: 'linux' | 'win32';
  readonly realPath: string;
  /** Each with the process that made it. */
  readonly wakeFiles: Map<string, SimulatedProcess>;
  /** True times until which the disk takes no write. */
  readonly readOnlyUntil: number;
  readonly fullUntil: number;
  /** A reading of the machine's clock, in microseconds, for one of the clocks of its processes. */
  microsOf(monotonicMs: number): number;
  filesOf(pid: number): ProcessFiles | undefined;
  watch(watch: Watch): () => void;
  wrote(path: string): void;
  removed(path: string): void;
  committed(process: SimulatedProcess): void;
}

export interface ProcessFilesOptions {
  readonly pidSpace: number | undefined;
  readonly clockOffsetMicros: number;
  /** Whether the system gives it watches of files. */
  readonly hasWatches: boolean;
}

interface Write {
  readonly database: SimulatedDatabase;
  statements: number;
}

const BOOT = 'boot-of-this-run\n';
/** Asking for a file that others have takes so long, in milliseconds. */
const ASKS_MS = 0.25;
const STATEMENTS_BEFORE_MIDDLE = 6;
/** An interruption that meets no transaction for so long does not take place, in milliseconds. */
const ARMED_MS = 200;

/** The files and the lock of one process. All of it goes back to the system at its end. */
export class ProcessFiles implements ProcessMachine, ConnectionOwner {
  readonly process: SimulatedProcess;
  readonly machine: SharedMachine;
  /** How far its monotonic clock is from the machine's, as in a time namespace. */
  readonly clockOffsetMicros: number;
  /** In which its pid means something; `undefined`: the system does not tell. */
  readonly pidSpace: number | undefined;
  readonly #hasWatches: boolean;
  readonly #databases = new Set<SimulatedDatabase>();
  readonly #opened = new Map<number, string>();
  #lastOpened = 2;
  readonly #unwatch = new Set<() => void>();
  #interruption: Interruption | undefined;
  #behindStatement = 0;
  #write: Write | undefined;
  /** The end of a transaction in which the process stands still, and what it does with wake files behind it. */
  #putOff: (() => void) | undefined;
  #putOffEffects: (() => void)[] = [];
  #statementsLeft = 0;
  #beforeStatement = (): void => {};
  /** A poll of this process takes so long, in milliseconds. */
  slowPollsMs = 0;

  constructor(machine: SharedMachine, process: SimulatedProcess, options: ProcessFilesOptions) {
    this.machine = machine;
    this.process = process;
    this.pidSpace = options.pidSpace;
    this.#hasWatches = options.hasWatches;
    this.clockOffsetMicros = options.clockOffsetMicros;
    process.onResume = () => this.#goesOn();
  }

  get platform(): 'linux' | 'win32' {
    return this.machine.platform;
  }

  get realPath(): string {
    return this.machine.realPath;
  }

  get isDiskFull(): boolean {
    return this.machine.world.now < this.machine.fullUntil;
  }

  hrtime(): bigint {
    const micros = this.machine.microsOf(this.process.clock.monotonic()) + this.clockOffsetMicros;
    return BigInt(micros) * 1_000n;
  }

  /** Another container does not see it. */
  signal(pid: number): true {
    const found = this.machine.filesOf(pid);
    if (found?.pidSpace === this.pidSpace && found?.process.isCrashed === false) return true;
    throw systemError('ESRCH', 'kill');
  }

  openDatabase(options: DatabaseSyncOptions): SimulatedDatabase {
    return new SimulatedDatabase(this, options);
  }

  /** At the next transaction of the process. */
  interruptNext(interruption: Interruption): void {
    const { world, random } = this.machine;
    this.#interruption = interruption;
    this.#behindStatement = random.between(1, STATEMENTS_BEFORE_MIDDLE);
    world.schedule(world.now + ARMED_MS, () => {
      if (this.#interruption === interruption) this.#interruption = undefined;
    });
  }

  /** Does something in the middle of what the process does, before one of its next statements. */
  beforeStatement(number: number, work: () => void): void {
    this.#statementsLeft = number;
    this.#beforeStatement = work;
  }

  statement(): void {
    if (this.process.isCrashed) throw new Error('the process has ended');
    this.#statementsLeft -= 1;
    if (this.#statementsLeft !== 0 || this.#interruption !== undefined) return;
    try {
      this.#beforeStatement();
    } catch {
      // The file is busy, also for others.
    }
  }

  opens(database: SimulatedDatabase): void {
    this.#databases.add(database);
  }

  closes(database: SimulatedDatabase, run: () => void): void {
    const close = (): void => {
      this.#databases.delete(database);
      run();
    };
    const commit = this.#putOff;
    if (this.#isAhead && commit !== undefined)
      this.#putOff = () => {
        commit();
        close();
      };
    else {
      this.#settle();
      close();
    }
  }

  writes(database: SimulatedDatabase): boolean {
    return this.#write?.database === database;
  }

  begin(database: SimulatedDatabase, run: () => void): void {
    // Its transaction before this one ends when the process goes on: by then the file is somebody else's.
    if (this.#isAhead && this.#putOff !== undefined) throw sqliteError(5, 'database is locked');
    this.#settle();
    if (this.machine.world.now < this.machine.readOnlyUntil)
      throw sqliteError(8, 'attempt to write a readonly database');
    try {
      run();
    } catch (error) {
      this.#spends(ASKS_MS);
      throw error;
    }
    this.#write = { database, statements: 0 };
    this.#interruptedAt('begun');
  }

  stepped(): void {
    const write = this.#write;
    if (write === undefined) return;
    write.statements += 1;
    if (write.statements === this.#behindStatement) this.#interruptedAt('middle');
  }

  /** `COMMIT`: while the process stands still it is put off, with the write lock. */
  commit(run: () => void): void {
    this.#interruptedAt('before commit');
    this.#end(() => {
      run();
      this.machine.committed(this.process);
    });
    this.#interruptedAt('after commit');
  }

  rollback(run: () => void): void {
    this.#end(run);
  }

  reads(isPoll: boolean): void {
    // Its connection reads what it has not committed yet.
    if (this.#isAhead) return;
    this.#settle();
    if (isPoll && this.slowPollsMs > 0 && !this.process.isPaused) this.#standsStill(this.slowPollsMs);
  }

  #end(run: () => void): void {
    this.#write = undefined;
    if (this.process.standsStill) this.#putOff = run;
    else run();
  }

  #interruptedAt(point: InterruptedAt): void {
    const interruption = this.#interruption;
    // What came while it stood still is worked off first.
    if (interruption?.point !== point || this.process.isPaused) return;
    this.#interruption = undefined;
    const { world } = this.machine;
    const { ms, kills } = interruption;
    world.countFault(kills ? 'kill in a transaction' : 'pause in a transaction');
    world.note(
      this.process.name,
      () => `${kills ? 'is killed' : 'stands still'} ${inWords(point)}, ${ms} ms`,
    );
    this.#standsStill(kills ? ms + 1 : ms);
    if (kills) world.schedule(world.now + ms, () => this.process.crash());
  }

  /** The code that runs now goes on behind the pause, by the clock that it reads; what it does shows then. */
  #standsStill(ms: number): void {
    this.process.pause(ms);
    this.#spends(ms);
  }

  #spends(ms: number): void {
    const { clock } = this.process;
    if (clock.ahead === 0)
      queueMicrotask(() => {
        clock.ahead = 0;
      });
    clock.ahead += ms;
    this.process.busyUntil = this.machine.world.now + clock.ahead;
  }

  /** Whether this is the rest of an iteration in which the process stood still: it runs ahead of the time of the others. */
  get #isAhead(): boolean {
    return this.process.standsStill && this.process.isInTurn;
  }

  #goesOn(): void {
    this.#settle();
    for (const effect of this.#putOffEffects.splice(0)) effect();
  }

  /** Now, or when the process goes on that stands still in the middle of what it does. */
  #does(effect: () => void): void {
    if (this.process.standsStill) this.#putOffEffects.push(effect);
    else effect();
  }

  #settle(): void {
    const putOff = this.#putOff;
    this.#putOff = undefined;
    putOff?.();
  }

  ended(): void {
    this.#putOff = undefined;
    this.#putOffEffects = [];
    this.#write = undefined;
    for (const unwatch of this.#unwatch) unwatch();
    for (const database of this.#databases) database.abandon();
    this.#databases.clear();
  }

  /** `node:fs`, as far as the adapter uses it. */
  readonly fs = {
    accessSync: (): void => {
      if (this.machine.world.now < this.machine.readOnlyUntil) throw systemError('EACCES', 'access');
    },
    realpathSync: (path: string): string => {
      if (this.#stat(path) === undefined) throw systemError('ENOENT', 'realpath');
      return path;
    },
    statSync: (
      path: string,
      options: { readonly bigint?: boolean; readonly throwIfNoEntry?: boolean } = {},
    ): unknown => {
      const found = this.#stat(path, options.bigint);
      if (found === undefined && options.throwIfNoEntry !== false) throw systemError('ENOENT', 'stat');
      return found;
    },
    readFileSync: (path: string): string => {
      if (path.endsWith('boot_id')) return BOOT;
      if (this.clockOffsetMicros === 0) throw systemError('ENOENT', 'open');
      const seconds = Math.floor(this.clockOffsetMicros / 1e6);
      return `monotonic ${seconds} ${(this.clockOffsetMicros - seconds * 1e6) * 1_000}\nboottime 0 0\n`;
    },
    readlinkSync: (): string => {
      if (this.pidSpace === undefined) throw systemError('ENOENT', 'readlink');
      return `pid:[${this.pidSpace}]`;
    },
    openSync: (path: string, flags: number): number => {
      const isNew = (flags & constants.O_CREAT) !== 0;
      const { wakeFiles } = this.machine;
      const isThere = wakeFiles.has(path) || (!isNew && this.process.standsStill);
      if (isNew === isThere) throw systemError(isNew ? 'EEXIST' : 'ENOENT', 'open');
      if (isNew) this.#does(() => wakeFiles.set(path, this.process));
      this.#lastOpened += 1;
      this.#opened.set(this.#lastOpened, path);
      return this.#lastOpened;
    },
    writeSync: (file: number): number => {
      const path = this.#opened.get(file) as string;
      this.#does(() => this.machine.wrote(path));
      return 1;
    },
    closeSync: (file: number): void => void this.#opened.delete(file),
    fchmodSync: (): void => {},
    fchownSync: (): void => {},
    rmSync: (path: string): void => this.machine.removed(path),
    watch: (path: string, _: unknown, listener: (event: 'change' | 'rename') => void) => {
      if (!this.#hasWatches) throw systemError('ENOSPC', 'watch');
      const { world } = this.machine;
      const tell = (event: 'change' | 'rename'): void =>
        this.process.deliver(world.now, () => {
          if (this.#unwatch.has(close)) listener(event);
        });
      const remove = this.machine.watch({ path, tell });
      const close = (): void => {
        this.#unwatch.delete(close);
        remove();
      };
      this.#unwatch.add(close);
      const watcher = { close, on: () => watcher };
      return watcher;
    },
  };

  #stat(path: string, bigint = false): unknown {
    if (path === LOCK_FILE) return statSync(this.realPath, { bigint, throwIfNoEntry: false });
    const isFolder = path === '/';
    if (!isFolder && !this.machine.wakeFiles.has(path)) return undefined;
    return { isFile: () => !isFolder, isDirectory: () => isFolder, size: 1, nlink: 1 };
  }
}
