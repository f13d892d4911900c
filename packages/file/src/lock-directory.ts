import { randomBytes } from 'node:crypto';
import {
  type BigIntStats,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type MachineClock, machineClock } from '@locks/core/machine';
import { codeOf } from './lock-folder-error.ts';
import { hasEnded, isOfThisSpace, processMark } from './process-mark.ts';

/**
 * How long a takeover waits before it counts, in milliseconds. Whoever saw the same stale directory has written to it within half of that or
 * given up, so the one whose write is there afterwards is alone.
 */
const SETTLE_MS = 50;

/** What a holder writes beside its directory, as one line. */
interface Owner {
  /** The mtime of the directory when this was written: another mtime belongs to somebody else, or to a program that writes no such line. */
  readonly mtime: string;
  readonly nonce: string;
  readonly mark: string;
  readonly boot: string;
  readonly micros: number;
}

let ownClock: MachineClock | undefined;
function clock(): MachineClock {
  return (ownClock ??= machineClock((says, cause) => new Error(says, { cause })));
}

/** A hold of the directory `FILE.lock`, whose mtime says when its holder was last alive, as proper-lockfile has it. */
export class DirectoryHold {
  readonly path: string;
  readonly #nonce = randomBytes(9).toString('base64url');
  #mtime: bigint | undefined;
  #micros = 0;
  #wallMs = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether nobody else has written to the directory since. @throws `ENOENT` where it has gone */
  isOurs(): boolean {
    const { mtimeNs } = statSync(this.path, { bigint: true });
    const owner = ownerOf(this.path);
    return mtimeNs === this.#mtime && (owner === undefined || owner.nonce === this.#nonce);
  }

  /** Returns what tells whether others may have taken the directory for stale since the last write, by one of the clocks that they use. */
  lateness(staleMs: number): () => boolean {
    const [micros, wallMs] = [this.#micros, this.#wallMs];
    return () => clock().nowMicros() - micros > staleMs * 1_000 || Date.now() - wallMs > staleMs;
  }

  /** Makes the directory fresh. Returns how it is afterwards. */
  write(): BigIntStats {
    // Counted from before the write: others count from no later moment.
    [this.#micros, this.#wallMs] = [clock().nowMicros(), Date.now()];
    // No two writes have the same time, where the file system keeps parts of milliseconds.
    const seconds = (this.#wallMs + Math.random()) / 1_000;
    utimesSync(this.path, seconds, seconds);
    const stats = statSync(this.path, { bigint: true });
    this.#mtime = stats.mtimeNs;
    const line = [stats.mtimeNs, this.#nonce, processMark(), clock().boot, this.#micros].join(' ');
    // It may be that of another user, who left the directory.
    rmSync(ownerFile(this.path), { force: true });
    writeFileSync(ownerFile(this.path), line);
    return stats;
  }

  remove(): void {
    rmSync(ownerFile(this.path), { force: true });
    rmdirSync(this.path);
  }

  removeQuietly(): void {
    try {
      this.remove();
    } catch {
      // Others take over what stays once it is stale.
    }
  }
}

/**
 * Takes the directory where it is missing or stale; `undefined`: somebody holds it.
 *
 * @returns a generator that yields how long to wait, in milliseconds: the forms with and without a promise wait in different ways
 */
export function* takeDirectory(path: string, staleMs: number): Generator<number, DirectoryHold | undefined> {
  const startedAt = performance.now();
  const hold = new DirectoryHold(path);
  const isWithin = (ms: number): boolean => performance.now() - startedAt < ms;
  // A runtime that does not tell the clock of the machine throws before anything is made.
  clock();
  // The holder may release it just now.
  if (make(path) || (statsOf(path) === undefined && make(path))) {
    writeFirst(hold, () => isWithin(staleMs));
    // A process that stood still in between may have written to what somebody else took over.
    return isWithin(staleMs) ? hold : undefined;
  }
  const before = statsOf(path);
  if (before === undefined || !isStale(path, before, staleMs)) return undefined;
  try {
    if (!isSame(before, hold.write())) return undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (codeOf(error) !== 'EPERM' && codeOf(error) !== 'EACCES') throw error;
    if (!replace(path, () => isWithin(SETTLE_MS / 2))) return undefined;
    writeFirst(hold, () => isWithin(SETTLE_MS / 2));
  }
  if (!isWithin(SETTLE_MS / 2)) return undefined;
  yield SETTLE_MS;
  return isStillOurs(hold) ? hold : undefined;
}

/** Writes to a directory that was just made. Where that fails, as on a full disk, the directory would keep everybody out until it is stale. */
function writeFirst(hold: DirectoryHold, isOurs: () => boolean): void {
  try {
    hold.write();
  } catch (error) {
    if (isOurs()) hold.removeQuietly();
    throw error;
  }
}

/** Writes to the own directory again. Returns whether it is still the own one. */
export function* keepDirectory(hold: DirectoryHold, staleMs: number): Generator<number, boolean> {
  const startedAt = performance.now();
  const isLate = hold.lateness(staleMs);
  if (!hold.isOurs()) return false;
  hold.write();
  if (!isLate()) return true;
  // After a sleep or a stop others may be taking it over at this moment: as at a takeover, one of the two gives up.
  if (performance.now() - startedAt > SETTLE_MS / 2) return false;
  yield SETTLE_MS;
  return isStillOurs(hold);
}

/** Goes through such a generator, and gives its result. */
export async function finished<T>(steps: Generator<number, T>): Promise<T> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    await sleep(step.value);
  }
}

/** Whether somebody holds the directory. */
export function isDirectoryHeld(path: string, staleMs: number): boolean {
  const stats = statsOf(path);
  return stats !== undefined && !isStale(path, stats, staleMs);
}

/**
 * A holder whose process is known is judged by whether it lives, and by the machine's clock, which no sleep or step of the wall clock moves;
 * any other one by the mtime.
 */
function isStale(path: string, { mtimeNs, mtimeMs }: BigIntStats, staleMs: number): boolean {
  const owner = ownerOf(path);
  const isKnown =
    owner?.mtime === String(mtimeNs) && owner.boot === clock().boot && isOfThisSpace(owner.mark);
  if (isKnown && hasEnded(owner.mark)) return true;
  if (isKnown && clock().bootIsExact) return clock().nowMicros() - owner.micros > staleMs * 1_000;
  return Number(mtimeMs) < Date.now() - staleMs;
}

/** Puts a new directory in the place of one that belongs to another user. */
function replace(path: string, isInTime: () => boolean): boolean {
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  renameSync(path, aside);
  if (isInTime()) {
    rmdirSync(aside);
    return make(path);
  }
  renameSync(aside, path);
  return false;
}

function isStillOurs(hold: DirectoryHold): boolean {
  try {
    return hold.isOurs();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Whether the directory was not removed and made again in between. Some file systems do not know when it was made, and tell another time. */
function isSame(before: BigIntStats, after: BigIntStats): boolean {
  if (before.ino !== after.ino || before.dev !== after.dev) return false;
  const isUnknown = before.birthtimeNs === before.ctimeNs && after.birthtimeNs === after.ctimeNs;
  return isUnknown || before.birthtimeNs === after.birthtimeNs;
}

function make(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function statsOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function ownerOf(path: string): Owner | undefined {
  try {
    const [mtime = '', nonce = '', mark = '', boot = '', micros] = readFileSync(
      ownerFile(path),
      'utf8',
    ).split(' ');
    return micros === undefined ? undefined : { mtime, nonce, mark, boot, micros: Number(micros) };
  } catch {
    return undefined;
  }
}

function ownerFile(path: string): string {
  return `${path}.owner`;
}
