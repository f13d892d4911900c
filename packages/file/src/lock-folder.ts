import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { StoreLayoutError } from '@locks/core/backend';
import { type MachineClock, networkFileSystem } from '@locks/core/machine';
import { codeOf, LockFolderError, LONGEST_NAME } from './lock-folder-error.ts';
import { makeFolder, newName } from './new-files.ts';
import type { CheckedFileOptions } from './options.ts';

/** The layout of the folder of a boot. A layout that an older version would not understand has another number. */
const LAYOUT = 1;
const OF_A_BOOT = /^(\d+)\.([\w-]+)$/;
/** The empty file whose name has the wall clock, in microseconds, when the machine's clock was 0. */
const SINCE = /^since\.(\d+)_*$/;
/** What the wall clock may be off by, in milliseconds, where times of files are compared with it. */
const WALL_SLACK_MS = 60_000;
/** What an earlier boot left is deleted so long after its last change, in milliseconds. */
const KEPT_MS = 86_400_000;

/**
 * The folder of this boot, in the folder of the locks:
 *
 *     1.BOOT/k/KEY/POINTER    the records: the name of the only file in the folder of a record is its version
 *     1.BOOT/v/WRITER         the values that one process has written
 *     1.BOOT/v-wake-CLIENT    a byte in it wakes a process that waits
 *     1.BOOT/t.WRITER-ID      made aside, and moved to its place
 *     1.BOOT/since.MICROS___  when the machine's clock began
 */
export class LockFolder {
  readonly path: string;
  readonly keys: string;
  readonly values: string;
  readonly clock: MachineClock;
  #since: number;
  readonly #options: CheckedFileOptions;
  readonly #identity: string;
  /** When the folders of other boots were last seen to change. */
  readonly #others = new Map<string, number>();

  /** Makes the folder if it is missing, and refuses one in which locks would not hold. */
  constructor(options: CheckedFileOptions, clock: MachineClock) {
    const { folder } = options;
    this.#options = options;
    this.clock = clock;
    this.path = join(folder, `${LAYOUT}.${clock.boot}`);
    this.keys = join(this.path, 'k');
    this.values = join(this.path, 'v');
    if (!existsSync(folder)) this.makeFolder(folder, true);
    refuseForeignFolder(options);
    // Who is refused leaves nothing. Of two layouts or machines that come at once one at least sees the other by its second look.
    this.#refuseOthers();
    if (!existsSync(this.path)) this.#make();
    for (const path of [this.keys, this.values]) this.makeFolder(path, true);
    this.#identity = this.#identityNow();
    this.#refuseOthers();
    this.#since = this.#sinceOfAll();
  }

  /** The wall clock when the machine's clock was 0, in microseconds: one number for all processes of the folder, the largest that one has written. */
  get since(): number {
    return this.#since;
  }

  /** Whether the path still leads to the folder that was opened: someone may have deleted or replaced it. */
  isInPlace(): boolean {
    return this.#identityNow() === this.#identity;
  }

  /**
   * Looks now and then at what others have done to the folder.
   *
   * @throws StoreLayoutError for another layout of this boot; LockFolderError `TWO_MACHINES`
   */
  lookAgain(): void {
    this.#refuseOthers();
    // A process that came after a step of the wall clock may have begun from a later time, and given tokens by it.
    this.#since = Math.max(this.#since, this.#latestSince());
  }

  #refuseOthers(): void {
    const { folder } = this.#options;
    for (const name of readdirSync(folder)) {
      const [, layout = '', boot] = OF_A_BOOT.exec(name) ?? [];
      if (boot === undefined) continue;
      if (boot !== this.clock.boot) this.#lookAtOther(join(folder, name));
      else if (layout !== String(LAYOUT))
        throw new StoreLayoutError(`the folder of locks ${folder}`, layout, LAYOUT, {
          other: 'another folder',
          reset: `delete ${join(folder, name)}`,
        });
    }
  }

  /** A path in the folder of this boot that nothing else has, for what is made aside. */
  aside(): string {
    return join(this.path, `t.${newName()}`);
  }

  makeFolder(path: string, mayExist = false): void {
    makeFolder(path, this.#options.shared, mayExist);
  }

  #identityNow(): string {
    return [this.path, this.keys, this.values].map(identityOf).join();
  }

  /** All appears at once: a process that is killed leaves nothing half made. */
  #make(): void {
    const aside = join(this.#options.folder, `t.${newName()}`);
    try {
      for (const path of [aside, join(aside, 'k'), join(aside, 'v')]) this.makeFolder(path);
      this.#writeSince(aside);
      renameSync(aside, this.path);
    } catch (error) {
      rmSync(aside, { recursive: true, force: true });
      if (!existsSync(this.path)) throw error;
    }
  }

  /** Where something else has deleted the file, or it may be that of an earlier boot, tokens go on from the wall clock. */
  #sinceOfAll(): number {
    const latest = this.#latestSince();
    const isOfThisBoot = this.clock.bootIsExact || this.#sinceNow() < latest + WALL_SLACK_MS * 1_000;
    return latest > 0 && isOfThisBoot ? latest : this.#writeSince(this.path);
  }

  #latestSince(): number {
    return Math.max(0, ...readdirSync(this.path).map((name) => Number(SINCE.exec(name)?.[1] ?? 0)));
  }

  #sinceNow(): number {
    return Math.floor(Date.now() * 1_000 - this.clock.nowMicros());
  }

  #writeSince(path: string): number {
    const since = this.#sinceNow();
    closeSync(openSync(join(path, `since.${since}`.padEnd(LONGEST_NAME, '_')), 'w'));
    return since;
  }

  /** Another boot is an earlier one of this machine, or one of another machine: that one goes on writing. */
  #lookAtOther(path: string): void {
    const changedAt = lastChange(path);
    const before = this.#others.get(path);
    const bootedAt = Date.now() - uptime() * 1_000;
    const isOfThisBoot = changedAt > bootedAt + WALL_SLACK_MS && changedAt < Date.now() + WALL_SLACK_MS;
    if (isOfThisBoot || (before !== undefined && changedAt > before))
      throw new LockFolderError(
        'TWO_MACHINES',
        `folder of locks ${this.#options.folder}: another machine, or another kernel, uses it too (${path}), and clocks of two machines have ` +
          `nothing in common. Give each a folder of its own, or use a store that has a server. Once the other one has stopped, delete ${path}`,
      );
    // After a refusal it stays as it was: the next call is refused too.
    this.#others.set(path, changedAt);
    if (changedAt < bootedAt - KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** @throws LockFolderError for a folder in which locks would not hold */
export function refuseForeignFolder({ folder, shared }: Pick<CheckedFileOptions, 'folder' | 'shared'>): void {
  const refuse = (code: 'NOT_A_FOLDER' | 'NETWORK' | 'FOREIGN_OWNER', says: string): never => {
    throw new LockFolderError(code, `folder of locks ${folder}: ${says}`);
  };
  const stats = statSync(folder);
  if (!stats.isDirectory()) refuse('NOT_A_FOLDER', 'it is no folder. Choose another path');
  const network = networkFileSystem(Number(statfsSync(folder).type));
  if (network !== undefined)
    refuse(
      'NETWORK',
      `it is on ${network}, and clocks of two machines have nothing in common. Choose a local disk, or a store that has a server`,
    );
  const user = process.getuid?.() ?? stats.uid;
  if (!shared && stats.uid !== user)
    refuse(
      'FOREIGN_OWNER',
      `it belongs to user ${stats.uid}, and this process to ${user}. Use the option \`shared\` in all processes, or a folder of its own`,
    );
}

function identityOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? '' : `${stats.dev}/${stats.ino}`;
}

/** When something below was last written, in milliseconds of the wall clock. */
function lastChange(path: string): number {
  let latest = 0;
  try {
    const values = join(path, 'v');
    for (const each of [join(path, 'k'), values, ...readdirSync(values).map((name) => join(values, name))])
      latest = Math.max(latest, statSync(each, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  } catch (error) {
    // Another process has just deleted it.
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  return latest;
}
