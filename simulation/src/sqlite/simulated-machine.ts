import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { ProcessFiles, type ProcessFilesOptions, type SharedMachine, type Watch } from './process-files.ts';

/** The machine was started so long before the run, in milliseconds. */
const STARTED_BEFORE_MS = 3_600_000;

/** What a file system does to a wake-up, as probabilities from 0 to 1. */
export interface WakeUps {
  readonly lost: number;
  readonly late: number;
  readonly lateMs: number;
  readonly twice: number;
}

export interface MachineOptions {
  /** Where SQLite keeps the file of this run. */
  readonly realPath: string;
  readonly platform: 'linux' | 'win32';
  readonly wakeUps: () => WakeUps;
  /** A transaction of this process was committed that had the write lock. */
  readonly committed: (process: SimulatedProcess) => void;
}

/** One machine, and what its processes share there: a file of SQLite, the wake files, and the clock. */
export class SimulatedMachine implements SharedMachine {
  readonly world: World;
  readonly #options: MachineOptions;
  readonly random: SeededRandom;
  /** Each with the process that made it. */
  readonly wakeFiles = new Map<string, SimulatedProcess>();
  readonly #processes = new Map<number, ProcessFiles>();
  readonly #watches = new Set<Watch>();
  /** True times until which the disk takes no write. */
  readOnlyUntil = 0;
  fullUntil = 0;

  constructor(world: World, random: SeededRandom, options: MachineOptions) {
    this.world = world;
    this.random = random;
    this.#options = options;
  }

  get platform(): 'linux' | 'win32' {
    return this.#options.platform;
  }

  get realPath(): string {
    return this.#options.realPath;
  }

  starts(process: SimulatedProcess, options: ProcessFilesOptions): ProcessFiles {
    const files = new ProcessFiles(this, process, options);
    process.machine = files;
    process.pid = 100 + this.#processes.size;
    this.#processes.set(process.pid, files);
    return files;
  }

  filesOf(pid: number): ProcessFiles | undefined {
    return this.#processes.get(pid);
  }

  /** The process that has this pid, also after its end. */
  processOf(pid: number): SimulatedProcess | undefined {
    return this.#processes.get(pid)?.process;
  }

  /** The clock of the machine, in microseconds: it stands still while the machine sleeps, where its system is Linux. */
  nowMicros(): number {
    const [files] = this.#processes.values();
    return this.microsOf(files?.process.clock.monotonic(0) ?? 0);
  }

  microsOf(monotonicMs: number): number {
    return Math.floor((STARTED_BEFORE_MS + monotonicMs) * 1_000);
  }

  committed(process: SimulatedProcess): void {
    this.#options.committed(process);
  }

  /** The run is over. */
  endsAll(): void {
    for (const files of this.#processes.values()) files.ended();
  }

  watch(watch: Watch): () => void {
    this.#watches.add(watch);
    return () => this.#watches.delete(watch);
  }

  /** A byte was written to a wake file. */
  wrote(path: string): void {
    const { lost, late, lateMs, twice } = this.#options.wakeUps();
    for (const watch of this.#watches) {
      if (watch.path !== path) continue;
      const delayMs = (): number => 0.05 + 0.2 * this.random.next();
      if (this.random.chance(lost)) {
        this.world.countFault('lost wake-up');
        continue;
      }
      const isLate = this.random.chance(late);
      if (isLate) this.world.countFault('late wake-up');
      this.#tell(watch, 'change', delayMs() + (isLate ? this.random.next() * lateMs : 0));
      if (!this.random.chance(twice)) continue;
      this.world.countFault('wake-up twice');
      this.#tell(watch, 'change', delayMs() + this.random.next() * lateMs);
    }
  }

  removed(path: string): void {
    if (!this.wakeFiles.delete(path)) return;
    for (const watch of this.#watches) {
      if (watch.path !== path) continue;
      // Linux tells first that the file has one name less.
      this.#tell(watch, 'change', 0.1);
      this.#tell(watch, 'rename', 0.1);
    }
  }

  #tell(watch: Watch, event: 'change' | 'rename', afterMs: number): void {
    this.world.schedule(this.world.now + afterMs, () => {
      if (this.#watches.has(watch)) watch.tell(event);
    });
  }
}
