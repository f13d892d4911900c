import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { removeWakeFile } from '@locks/core/machine';
import { hasEnded, isOfThisSpace } from './process-mark.ts';
import { CLIENT, nameOfKey, namesIn, type RecordFiles, removeEmpty } from './record-files.ts';

/** A process sweeps at its first write, after so many, and whenever its file of values is followed by another one. */
const WRITES = 4_096;
/** How seldom all records are looked at while nothing is known to be left, in milliseconds. */
const SCAN_EVERY_MS = 600_000;
const RECORDS_AT_ONCE = 64;
/** A record that nobody holds or waits for is deleted when it was not written for so long, in microseconds. */
const IDLE_MICROS = 86_400_000_000;
/** What a process of another container has not written for so long is taken for that of one that has ended, in milliseconds. */
const SILENT_MS = 86_400_000;
const LEFT_ASIDE = /^t\.(.+)$/;
const WAKE_FILE = /^v-wake-(.+)$/;

/** Deletes what processes have left that ended, and records that were idle for a day. Any number of processes may do so at once. */
export class FolderSweeper {
  readonly #files: RecordFiles;
  #writes = 0;
  #sweptWith: string | undefined;
  #scannedAt = -Infinity;
  #isSweeping = false;
  #isStopped = false;

  constructor(files: RecordFiles) {
    this.#files = files;
  }

  /** Called after each write of this process. */
  wrote(): void {
    const { ownName } = this.#files.values;
    this.#writes += 1;
    if (this.#isSweeping || (ownName === this.#sweptWith && this.#writes % WRITES !== 0)) return;
    this.#sweptWith = ownName;
    this.#isSweeping = true;
    this.sweep()
      // A sweep is a courtesy: the next one meets what this one has left.
      .catch(() => undefined)
      .finally(() => {
        this.#isSweeping = false;
      });
  }

  stop(): void {
    this.#isStopped = true;
  }

  async sweep(): Promise<void> {
    await nextTurn(undefined, { ref: false });
    if (this.#isStopped) return;
    const { folder, values } = this.#files;
    this.#sweepAside();
    const left = (namesIn(folder.values) ?? []).filter(
      (name) => values.isFormer(name) || this.#isLeft(join(folder.values, name), name),
    );
    const isDue = performance.now() - this.#scannedAt > SCAN_EVERY_MS;
    if (left.length === 0 && !isDue) return;
    this.#scannedAt = performance.now();
    // The first look moves the values that are still in use, and the second one finds none: one list may lack a name.
    await this.#scan(new Set(left));
    if (left.length === 0) return;
    const used = await this.#scan(new Set(left));
    if (used === undefined || this.#isStopped) return;
    for (const name of left) if (!used.has(name)) values.remove(name);
  }

  /**
   * Looks at all records, and moves values out of files of processes that have ended: such a process renames no pointer any more, so
   * that ever fewer pointers name its file.
   *
   * @returns the files that some record names; `undefined` where not all records could be looked at
   */
  async #scan(left: ReadonlySet<string>): Promise<ReadonlySet<string> | undefined> {
    const { folder, values } = this.#files;
    const names = namesIn(folder.keys) ?? [];
    const used = new Set<string>();
    let [isWhole, bytes] = [true, 0];
    for (const [index, name] of names.entries()) {
      if (index % RECORDS_AT_ONCE === RECORDS_AT_ONCE - 1) await nextTurn(undefined, { ref: false });
      if (this.#isStopped) return undefined;
      const path = join(folder.keys, name);
      const pointer = this.#files.pointer(path);
      bytes += pointer?.length ?? 0;
      // A folder in which nothing is found may be one whose list was incomplete: only an empty one can be removed.
      if (pointer === undefined) isWhole = removeEmpty(path) && isWhole;
      else if (this.#isOver(name, pointer)) this.#files.remove(path, pointer.name);
      else if (left.has(pointer.writer)) {
        used.add(pointer.writer);
        this.#files.adopt(path, pointer);
      }
    }
    values.noteBytes(bytes);
    return isWhole ? used : undefined;
  }

  #isOver(
    name: string,
    { number, isIdle, writer }: { number: number; isIdle: boolean; writer: string },
  ): boolean {
    if (name.startsWith(nameOfKey(CLIENT))) return hasEnded(writer);
    return isIdle && number < this.#files.folder.clock.nowMicros() - IDLE_MICROS;
  }

  #sweepAside(): void {
    const { folder } = this.#files;
    for (const parent of [folder.path, join(folder.path, '..')])
      for (const name of namesIn(parent) ?? []) {
        const path = join(parent, name);
        const [, mark] = LEFT_ASIDE.exec(name) ?? [];
        if (mark !== undefined && this.#isLeft(path, mark)) rmSync(path, { recursive: true, force: true });
        const [, client] = parent === folder.path ? (WAKE_FILE.exec(name) ?? []) : [];
        // The record of a client is written before its wake file.
        if (client !== undefined && namesIn(join(folder.keys, nameOfKey(CLIENT + client))) === undefined)
          removeWakeFile(folder.values, client);
      }
  }

  #isLeft(path: string, mark: string): boolean {
    if (isOfThisSpace(mark)) return hasEnded(mark);
    const { mtimeMs = Infinity } = statSync(path, { throwIfNoEntry: false }) ?? {};
    return mtimeMs < Date.now() - SILENT_MS;
  }
}
