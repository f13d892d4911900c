import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SeededRandom } from '../kernel/seeded-random.ts';
import { memoryFolder } from '../sqlite/database-folder.ts';
import type { FileWorker, FileWorkers } from './file-workers.ts';
import { FolderHistory, namesIn } from './folder-history.ts';
import {
  ALIVE,
  type FileAnswer,
  type FileCall,
  type FileWork,
  FULL,
  KILL,
  LATE,
  MOST_PROCESSES,
  MOST_WORKERS,
  PROCEED,
  pidOf,
  type Seen,
  SHORT,
  slotOf,
} from './steps.ts';

/** What a schedule came to. */
export interface FileResult {
  readonly steps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly violation: { readonly clause: string; readonly message: string } | undefined;
  /** Where it was asked for. */
  readonly timeline: readonly string[];
}

interface Running {
  readonly worker: FileWorker;
  pid: number;
  isAlive: boolean;
  work: FileWork | undefined;
  /** The step at which the work began. */
  from: number;
  /** Whether the disk was full for one of its calls. */
  wasFull: boolean;
  worksLeft: number;
  turns: number;
  /** The step before which the others go on. */
  stillUntil: number;
  /** What it has seen last of each record. */
  readonly seen: Map<string, Seen>;
}

/** How often a write with this answer may have changed its record. */
const CHANGES: Partial<Record<FileAnswer['status'], readonly [least: number, most: number]>> = {
  written: [1, 1],
  conflict: [0, 0],
};

class Violation extends Error {
  readonly clause: string;

  constructor(clause: string, message: string) {
    super(message);
    this.clause = clause;
  }
}

const MUTATING = new Set<FileCall>(['renameSync', 'unlinkSync', 'rmdirSync']);
const MOST_STEPS = 20_000;
/** Each round writes all records, so that files of values follow each other and processes sweep. */
const LAST_ROUNDS = 3;
const MOST_TURNS = 200;
/** Of values, of one process: it deletes the one before the last, once it has another. */
const MOST_FILES = 2;
const HELD_MS = 5_000;
/** Until a list is read to its end the others go on, most often. */
const LIST_GOES_ON = 0.15;

/** Runs one schedule: each call of the file system is a step, and the seed says who makes the next one. */
export class FileSchedule {
  readonly #random: SeededRandom;
  readonly #workers: FileWorkers;
  readonly #folder = mkdtempSync(join(memoryFolder(), 'locks-simulation-'));
  readonly #history = new FolderHistory(join(this.#folder, '1.boot'));
  readonly #running: Running[];
  readonly #keys: readonly string[];
  readonly #faults: Record<string, number> = {};
  readonly #timeline: string[] | undefined;
  readonly #plan: {
    readonly late: number;
    readonly short: number;
    readonly full: number;
    readonly still: number;
    kills: number;
  };
  #step = 0;
  #values = 0;
  #processes = 0;

  constructor(workers: FileWorkers, seed: number, isVerbose = false) {
    const random = new SeededRandom(seed);
    this.#random = random;
    this.#workers = workers;
    this.#timeline = isVerbose ? [] : undefined;
    const isSound = random.chance(0.2);
    this.#plan = {
      late: !isSound && random.chance(0.6) ? random.pick([0.1, 0.5, 1]) : 0,
      short: !isSound && random.chance(0.2) ? 0.3 : 0,
      full: !isSound && random.chance(0.2) ? random.pick([0.02, 0.2]) : 0,
      kills: !isSound && random.chance(0.7) ? random.between(1, 4) : 0,
      still: !isSound && random.chance(0.6) ? random.pick([0.01, 0.05]) : 0,
    };
    this.#keys = random.chance(0.7) ? ['lock/a'] : ['lock/a', 'lock/b'];
    const many = random.chance(0.6) ? 2 : MOST_WORKERS;
    workers.time[0] = 1_000;
    workers.words.fill(0, ALIVE);
    this.#running = workers.all.slice(0, many).map((worker) => this.#fresh(worker, random.between(2, 9)));
  }

  run(): FileResult {
    let violation: FileResult['violation'];
    try {
      for (const one of this.#running) this.#start(one);
      while (this.#step < MOST_STEPS && this.#next());
      this.#quiesce();
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      const { clause, message } = error;
      violation = { clause, message };
    }
    for (const { worker } of this.#running) {
      while (worker.call !== 'work') worker.go(KILL);
      worker.answer();
    }
    rmSync(this.#folder, { recursive: true, force: true });
    return { steps: this.#step, faults: this.#faults, violation, timeline: this.#timeline ?? [] };
  }

  #fresh(worker: FileWorker, worksLeft: number): Running {
    return {
      worker,
      pid: 0,
      isAlive: false,
      work: undefined,
      from: 0,
      wasFull: false,
      worksLeft,
      turns: 0,
      stillUntil: 0,
      seen: new Map(),
    };
  }

  #start(one: Running): void {
    one.pid = pidOf(this.#processes);
    this.#processes += 1;
    one.isAlive = true;
    one.seen.clear();
    this.#workers.words[ALIVE + slotOf(one.pid)] = 1;
    this.#note(one, 'starts');
    one.worker.begin({ op: 'start', pid: one.pid, folder: this.#folder });
    const answer = one.worker.answer();
    if (answer.status === 'failed') throw new Error(answer.error);
  }

  /** One step of one process. Gives whether there was one. */
  #next(): boolean {
    const random = this.#random;
    const unfinished = this.#running.filter((one) => one.work !== undefined || one.worksLeft > 0);
    if (unfinished.length === 0) return false;
    const going = unfinished.filter(({ stillUntil }) => stillUntil <= this.#step);
    const able = going.length > 0 ? going : unfinished;
    let one = random.pick(able);
    if (one.work !== undefined && one.worker.call === 'rest of a list' && !random.chance(LIST_GOES_ON))
      one = random.pick(able);
    this.#workers.time[0] = (this.#workers.time[0] ?? 0) + this.#passes();
    if (!one.isAlive) {
      if (this.#processes < MOST_PROCESSES) this.#start(one);
      else one.worksLeft = 0;
    } else if (one.work === undefined) this.#begin(one, this.#draw(one));
    else {
      this.#advance(one, this.#told(one));
      if (random.chance(this.#plan.still)) this.#standStill(one);
    }
    return true;
  }

  /** Until the others have made so many calls. */
  #standStill(one: Running): void {
    one.stillUntil = this.#step + this.#random.between(5, 150);
    this.#fault(one, 'stand still');
  }

  #fault(one: Running, fault: string): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1;
    this.#note(one, `FAULT ${fault}`);
  }

  /** Calls of the file system follow each other within a microsecond, or later. */
  #passes(): number {
    if (this.#random.chance(0.4)) return 0;
    return this.#random.chance(0.01) ? 1_100 : this.#random.between(1, 50) / 1_000;
  }

  #told({ worker: { call } }: Running): readonly [how: number, fault?: string] {
    const random = this.#random;
    const plan = this.#plan;
    if (plan.kills > 0 && random.chance(0.03)) {
      plan.kills -= 1;
      return [KILL, 'kill'];
    }
    if (call === 'readdirSync' && random.chance(plan.late)) return [LATE, 'late names'];
    if (call === 'writeSync' && random.chance(plan.short)) return [SHORT, 'short write'];
    const takesRoom =
      call === 'writeSync' || call === 'openSync' || call === 'mkdirSync' || call === 'renameSync';
    if (takesRoom && random.chance(plan.full)) return [FULL, 'full disk'];
    return [PROCEED];
  }

  #draw(one: Running): FileWork {
    const random = this.#random;
    if (one.turns > 0 && random.chance(0.5)) return { op: 'turn' };
    one.worksLeft -= 1;
    const key = random.pick(this.#keys);
    const seen = one.seen.get(key);
    if (seen === undefined || random.chance(0.15)) return { op: 'read', key };
    if (random.chance(0.08)) return { op: 'list' };
    const ifVersion = seen === 'absent' ? undefined : seen.version;
    const isDeleted = ifVersion !== undefined && random.chance(0.25);
    return this.#write(key, isDeleted ? undefined : this.#value(key), ifVersion);
  }

  #write(key: string, value: string | undefined, ifVersion: string | undefined): FileWork {
    // Of a value that is gone it counts whether somebody may hold.
    const heldUntilMs = this.#random.chance(0.5) ? (this.#workers.time[0] ?? 0) + HELD_MS : undefined;
    return { op: 'write', key, value, ifVersion, heldUntilMs };
  }

  #value(key: string): string {
    this.#values += 1;
    return `{"${key}":${this.#values},"${'-'.repeat(this.#random.between(0, 30))}"`;
  }

  #begin(one: Running, work: FileWork): void {
    [one.work, one.from, one.wasFull] = [work, this.#step, false];
    this.#note(one, inWords(work));
    one.worker.begin(work);
    this.#ended(one);
  }

  #advance(one: Running, [how, fault]: readonly [how: number, fault?: string]): void {
    const { worker } = one;
    const { call } = worker;
    this.#step += 1;
    if (fault !== undefined) this.#fault(one, fault);
    this.#note(one, call);
    if (how === KILL) {
      one.isAlive = false;
      this.#workers.words[ALIVE + slotOf(one.pid)] = 0;
    }
    one.wasFull ||= how === FULL;
    worker.go(how, this.#random.word() | 0);
    if (MUTATING.has(call) && how !== KILL) {
      const wrong = this.#history.look(
        this.#step,
        one.pid,
        one.work?.op === 'write' ? one.work.key : undefined,
      );
      if (wrong !== undefined) throw new Violation(...wrong);
      const gone = call === 'unlinkSync' ? this.#history.lookAtValues() : undefined;
      if (gone !== undefined) throw new Violation('values', gone);
    }
    this.#ended(one);
  }

  /** Judges what came of a work, once it has ended. */
  #ended(one: Running): void {
    const { work, worker } = one;
    if (work === undefined || worker.call !== 'work') return;
    one.work = undefined;
    const answer = worker.answer();
    one.turns = answer.turns;
    this.#note(one, `= ${JSON.stringify(answer)}`);
    const wrong = this.#judge(one, work, answer);
    if (wrong !== undefined) throw new Violation(...wrong);
  }

  #judge(
    one: Running,
    work: FileWork,
    answer: FileAnswer,
  ): readonly [clause: string, message: string] | undefined {
    const { pid, from, wasFull, seen } = one;
    const during = (key: string) => this.#history.between(key, from, this.#step);
    if (work.op === 'read' || work.op === 'write') {
      const changes = during(work.key).filter((state) => state.by === pid && state.step > from).length;
      const [least, most] = work.op === 'read' ? [0, 0] : (CHANGES[answer.status] ?? [0, 1]);
      if (changes < least || changes > most)
        return [
          'compare and swap',
          `${inWords(work)} of ${pid} changes it ${changes} times, and is ${answer.status}`,
        ];
    }
    switch (answer.status) {
      case 'done':
      case 'killed':
        return undefined;
      case 'failed': {
        if (wasFull) return undefined;
        return ['errors', `${inWords(work)} of ${pid} fails with ${answer.error}`];
      }
      case 'listed': {
        for (const key of this.#history.keys) {
          const values = during(key).map((state) => (state.seen === 'absent' ? undefined : state.seen.value));
          const listed = answer.values.filter((value) => value.startsWith(`{"${key}"`));
          if (listed.some((value) => !values.includes(value)))
            return ['reads', `${pid} lists ${listed.join()} of ${key}, which has ${values.join()} meanwhile`];
          if (!values.includes(undefined) && listed.length !== 1)
            return ['reads', `${pid} lists ${listed.length} records of ${key}, which is there all the time`];
        }
        return undefined;
      }
      case 'read':
      case 'conflict': {
        if (work.op !== 'read' && work.op !== 'write') return undefined;
        const { key } = work;
        seen.set(key, answer.seen);
        const states = during(key);
        const [shown, all] = [answer.seen, states.map((state) => state.seen)].map((each) =>
          JSON.stringify(each),
        );
        if (!states.some((state) => isSame(state.seen, answer.seen)))
          return ['reads', `${pid} reads ${shown} of ${key}, which is ${all} meanwhile`];
        if (work.op === 'read') return undefined;
        const isJustified = states.some(
          ({ seen: it }) => (it === 'absent' ? undefined : it.version) !== work.ifVersion,
        );
        return isJustified
          ? undefined
          : ['compare and swap', `${pid} is refused ${key} at ${work.ifVersion}`];
      }
      case 'written': {
        if (work.op !== 'write') return undefined;
        const { key, value, ifVersion } = work;
        const made: Seen = value === undefined ? 'absent' : { version: answer.version, value };
        seen.set(key, made);
        const states = during(key);
        const at = states.findIndex(
          (state, index) => index > 0 && state.by === pid && isSame(state.seen, made),
        );
        const before = states[at - 1]?.seen;
        const follows =
          before !== undefined && (before === 'absent' ? undefined : before.version) === ifVersion;
        if (at > 0 && follows) return undefined;
        return [
          'compare and swap',
          `${pid} has written ${key} at ${ifVersion}, which was ${JSON.stringify(before)}`,
        ];
      }
      default:
        return answer satisfies never;
    }
  }

  /** Without faults the processes that are left write and sweep, and nothing stays of those that have ended. */
  #quiesce(): void {
    if (!this.#running.some(({ isAlive }) => isAlive) && this.#running[0] !== undefined)
      this.#start(this.#running[0]);
    for (let round = 0; round < LAST_ROUNDS; round += 1)
      for (const one of this.#running.filter(({ isAlive }) => isAlive)) {
        for (const key of this.#keys) {
          this.#alone(one, { op: 'read', key });
          const seen = one.seen.get(key);
          const ifVersion = seen === undefined || seen === 'absent' ? undefined : seen.version;
          const before = this.#history.now(key);
          this.#alone(one, this.#write(key, this.#value(key), ifVersion));
          if (isSame(this.#history.now(key), before))
            throw new Violation('progress', `${one.pid} cannot write ${key} at ${ifVersion}`);
        }
        for (let turn = 0; one.turns > 0; turn += 1) {
          if (turn === MOST_TURNS) throw new Violation('progress', `${one.pid} sweeps for ever`);
          this.#alone(one, { op: 'turn' });
        }
        this.#workers.time[0] = (this.#workers.time[0] ?? 0) + 400_000;
      }
    const isLiving = (mark: string): boolean =>
      this.#running.some(({ isAlive, pid }) => isAlive && pid === pidIn(mark));
    const used = this.#history.keys
      .map((key) => this.#history.now(key))
      .map((seen) => seen !== 'absent' && seen.version.split('.')[2]);
    const boot = join(this.#folder, '1.boot');
    const values = namesIn(join(boot, 'v')).filter((name) => !isLiving(name) && !used.includes(name));
    const aside = [...namesIn(boot), ...namesIn(this.#folder)].filter((name) => name.startsWith('t.'));
    const former = this.#running.flatMap(({ pid }) =>
      namesIn(join(boot, 'v'))
        .filter((name) => pidIn(name) === pid)
        .slice(MOST_FILES),
    );
    const left = [...values, ...aside, ...former];
    if (left.length > 0) throw new Violation('left behind', `${left.join()} is left`);
  }

  #alone(one: Running, work: FileWork): void {
    this.#begin(one, work);
    while (one.work !== undefined) this.#advance(one, [PROCEED]);
  }

  #note({ pid }: Running, what: string): void {
    this.#timeline?.push(`${((this.#workers.time[0] ?? 0) * 1_000).toFixed(0)} µs  ${pid}  ${what}`);
  }
}

function isSame(one: Seen, other: Seen): boolean {
  if (one === 'absent' || other === 'absent') return one === other;
  return one.version === other.version && one.value === other.value;
}

function pidIn(mark: string): number {
  return Number.parseInt(mark.split('-')[0] ?? '', 36);
}

function inWords(work: FileWork): string {
  switch (work.op) {
    case 'write':
      return `${work.value === undefined ? 'deletes' : 'writes'} ${work.key} at ${work.ifVersion ?? 'no record'}`;
    case 'read':
      return `reads ${work.key}`;
    default:
      return work.op;
  }
}
