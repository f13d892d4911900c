import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { taskset } from '../measure/pinning.ts';

/** What a client process does: it takes locks again and again, or takes some and holds them until it is killed. */
export interface Task {
  readonly library: string;
  /** `host:port`. */
  readonly address: string;
  readonly op: 'loop' | 'hold';
  /** Of `readers`, lane 0 writes. */
  readonly kind: 'lock' | 'readers' | 'semaphore';
  /** The permits of the semaphore. */
  readonly capacity: number;
  readonly name: string;
  /** Whether each lane has a lock of its own. */
  readonly own: boolean;
  readonly lanes: number;
  readonly sectionMs: number;
  readonly ttlMs: number;
}

/** What a process that loops reports: `[lane, asked, entered, left]`, and `[lane, asked]` of those who still wait. */
export interface Looped {
  readonly entries: readonly (readonly [number, number, number, number])[];
  readonly unserved: readonly (readonly [number, number])[];
}

export interface Library {
  readonly name: string;
  /** The bare use of the same client. */
  readonly floor: string;
  readonly kinds: readonly Task['kind'][];
  /** Whether it renews what it holds by itself. */
  readonly renews: boolean;
}

export interface Language {
  readonly name: string;
  readonly libraries: readonly Library[];
  /** Builds the driver into a folder. @returns why it cannot be built, or the command of a client process */
  build(folder: string): string | ((task: Task) => readonly string[]);
}

const sources = fileURLToPath(new URL('../../languages/', import.meta.url));
const lock = ['lock'] as const;
const allKinds = ['lock', 'readers', 'semaphore'] as const;

function library(name: string, floor: string, renews: boolean, kinds: Library['kinds'] = lock): Library {
  return { name, floor, kinds, renews };
}

/** Runs a build step. @returns what is wrong, if anything */
function run(cwd: string, command: string, args: readonly string[], env = {}): string | undefined {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd: path.join(sources, cwd),
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  if (error !== undefined) return `${command} is not installed`;
  if (status === 0) return undefined;
  const said = `${stdout}${stderr}`.trim().split('\n').at(-1);
  return `${command} ${args[0]} failed: ${said}`;
}

export const languages: readonly Language[] = [
  {
    name: 'Node.js',
    libraries: [
      library('raw ioredis', 'raw ioredis', false),
      library('@locks/redis-ioredis', 'raw ioredis', true, allKinds),
      library('redlock-universal', 'raw ioredis', false),
      library('raw node-redis', 'raw node-redis', false),
      library('@locks/redis-node', 'raw node-redis', true, allKinds),
    ],
    build: () => (task) => [process.execPath, path.join(sources, 'node/driver.ts'), JSON.stringify(task)],
  },
  {
    name: 'Go',
    libraries: [
      library('raw go-redis', 'raw go-redis', false),
      library('redsync', 'raw go-redis', false),
      library('redislock', 'raw go-redis', false),
      library('rueidislock', 'raw go-redis', true),
    ],
    build(folder) {
      const driver = path.join(folder, 'go-driver');
      return run('go', 'go', ['build', '-o', driver, '.']) ?? ((task) => [driver, JSON.stringify(task)]);
    },
  },
  {
    name: 'Java',
    libraries: [
      library('raw Redisson', 'raw Redisson', false),
      library('Redisson RLock', 'raw Redisson', true, allKinds),
      library('Redisson RFairLock', 'raw Redisson', true),
    ],
    build(folder) {
      const classes = path.join(folder, 'java');
      const jars = path.join(classes, '*');
      const source = 'src/main/java/Driver.java';
      return (
        run('java', 'mvn', ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${classes}`]) ??
        run('java', 'javac', ['-cp', jars, '-d', classes, source]) ??
        ((task) => [
          'java',
          '-cp',
          `${classes}${path.delimiter}${jars}`,
          'Driver',
          ...Object.entries(task).map(([name, value]) => `${name}=${value}`),
        ])
      );
    },
  },
  {
    name: 'Python',
    libraries: [library('raw redis-py', 'raw redis-py', false), library('redis-py', 'raw redis-py', false)],
    build(folder) {
      const environment = path.join(folder, 'python');
      const python = path.join(environment, 'bin/python');
      return (
        run('python', 'python3', ['-m', 'venv', environment]) ??
        run('python', python, ['-m', 'pip', 'install', '-q', '-r', 'requirements.txt']) ??
        ((task) => [python, path.join(sources, 'python/driver.py'), JSON.stringify(task)])
      );
    },
  },
  {
    name: 'Rust',
    libraries: [library('raw redis-rs', 'raw redis-rs', false), library('rslock', 'raw redis-rs', false)],
    build(folder) {
      const target = path.join(folder, 'rust');
      const driver = path.join(target, 'release/languages');
      return (
        run('rust', 'cargo', ['build', '--quiet', '--release', '--locked'], { CARGO_TARGET_DIR: target }) ??
        ((task) => [driver, JSON.stringify(task)])
      );
    },
  },
];

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A client process on the cores of clients, and the lines that it says. */
export class Client {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #said = '';
  #heard: (() => void) | undefined;

  constructor(command: readonly string[], cores: string | undefined) {
    const [program, ...args] = cores === undefined ? command : [taskset, '-c', cores, ...command];
    this.#child = spawn(program as string, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    running.add(this.#child);
    this.#exited = new Promise((resolve) => this.#child.once('close', resolve));
    // A process that has ended is told of by `line`.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.once('close', () => {
      running.delete(this.#child);
      this.#heard?.();
    });
    this.#child.stdout?.on('data', (text: Buffer) => {
      this.#said += text.toString();
      this.#heard?.();
    });
  }

  /** Says when to begin and to end, on the machine's monotonic clock, as all times. */
  begin(startAt: number, stopAt: number): void {
    this.#child.stdin?.write(`${startAt} ${stopAt}\n`);
  }

  /** The next line. @throws Error when the process ended without one, or took too long */
  async line(withinMs: number): Promise<string> {
    const timeout = setTimeout(() => this.#child.kill('SIGKILL'), withinMs);
    while (!this.#said.includes('\n') && running.has(this.#child))
      await new Promise<void>((heard) => (this.#heard = heard));
    clearTimeout(timeout);
    const end = this.#said.indexOf('\n');
    if (end < 0) throw new Error('a client process ended without a result, or hung');
    const line = this.#said.slice(0, end);
    this.#said = this.#said.slice(end + 1);
    return line;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}

/** A folder for what is built, which is kept between runs. */
export function buildFolder(): string {
  const folder = fileURLToPath(new URL('../../../.tools/languages/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  return folder;
}
