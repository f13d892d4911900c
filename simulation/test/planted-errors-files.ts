import type { SourceChange } from '../src/process/source-change.ts';

/** An error in a line of `@locks/file` on which a promise hangs. */
interface FileError {
  readonly backend: 'file';
  readonly what: string;
  /** The first schedule. */
  readonly seed: number;
  readonly change: SourceChange;
}

type Change = readonly [from: string, to: string, what: string, seed?: number];

function errorsIn(file: string, ...changes: readonly Change[]): FileError[] {
  return changes.map(([from, to, what, seed = 1]) => ({
    backend: 'file',
    what,
    seed,
    change: { file: `file/src/${file}.ts`, from, to },
  }));
}

/** One for each order of calls, and each second look, on which the files of a record rely. */
export const fileErrors: readonly FileError[] = [
  ...errorsIn(
    'record-files',
    ['tries <= MOST_TRIES', 'tries <= 1', 'a list without the pointer is believed at once'],
    ['if (latest(names) !== undefined) return undefined;', '', 'a record that is there is made again'],
    [
      "this.folder.makeFolder(aside);\n      closeSync(openSync(join(aside, name), 'wx'));",
      "this.folder.makeFolder(aside); removeEmpty(path); try { this.folder.makeFolder(path); } catch {}\n      closeSync(openSync(join(path, name), 'wx'));",
      'a record is made in its place',
    ],
    [
      '() => renameSync(aside, path)',
      '() => { rmSync(path, { recursive: true, force: true }); renameSync(aside, path); }',
      'a new record takes the place of another',
    ],
    [
      'renameSync(join(path, from.name), join(path, name)))',
      "{ closeSync(openSync(join(path, name), 'wx')); unlinkSync(join(path, from.name)); })",
      'a write makes its pointer and deletes the one before',
    ],
    [
      'Math.max(from.number + 1, this.folder.clock.nowMicros())',
      'this.folder.clock.nowMicros()',
      'two writes of one microsecond have one number',
    ],
    ['{ ...from, number: from.number + 1 }', 'from', 'a value that is moved keeps its number'],
    [
      'if (isRemoved) removeEmpty(path);',
      'if (isRemoved) rmSync(path, { recursive: true, force: true });',
      'a deletion takes a later record with it',
    ],
    ['if (!isMoved) rmSync(aside, { recursive: true, force: true });', '', 'what was made aside stays'],
  ),
  ...errorsIn('value-files', [
    'for (let done = 0; done < length; )\n      done +=',
    'for (let done = 0; done === 0; )\n      done +=',
    'a value is written in part',
  ]),
  ...errorsIn(
    'folder-sweeper',
    ['values.isFormer(name) || this.#isLeft(', 'this.#isLeft(', 'former files of a process stay'],
    ['this.#sweepAside();', '', 'what killed processes made aside stays'],
  ),
  ...errorsIn(
    'process-mark',
    ["code === 'ESRCH'", "code === 'EPERM'", 'a process that has ended counts as living'],
    [
      'return startsNow !== undefined && startsNow !== start;',
      'return true;',
      'a living process counts as ended',
    ],
  ),
];
