import type { SourceChange } from '../src/process/source-change.ts';

/** An error in a line of `@locks/file` on which a promise hangs. */
interface FileError {
  readonly backend: 'file';
  readonly what: string;
  /** The rule that it breaks. */
  readonly rule: string;
  readonly change: SourceChange;
}

type Change = readonly [from: string, to: string, what: string, rule: string];

function errorsIn(file: string, ...changes: readonly Change[]): FileError[] {
  return changes.map(([from, to, what, rule]) => ({
    backend: 'file',
    what,
    rule,
    change: { file: `file/src/${file}.ts`, from, to },
  }));
}

/** Orders of calls, and looks, on which the files of a record rely; docs/simulation.md says which ones no schedule has met. */
export const fileErrors: readonly FileError[] = [
  ...errorsIn(
    'record-files',
    ['tries <= MOST_TRIES', 'tries <= 1', 'a list without the pointer is believed at once', 'reads'],
    [
      'if (latest(names) !== undefined) return undefined;',
      '',
      'a record that is there is made again',
      'compare and swap',
    ],
    [
      "this.folder.makeFolder(aside);\n      closeSync(openSync(join(aside, name), 'wx'));",
      "this.folder.makeFolder(path, true);\n      closeSync(openSync(join(path, name), 'wx'));\n      return name;",
      'a record is made in its place',
      'compare and swap',
    ],
    [
      '() => renameSync(aside, path)',
      '() => { rmSync(path, { recursive: true, force: true }); renameSync(aside, path); }',
      'a new record takes the place of another',
      'compare and swap',
    ],
    [
      'renameSync(path + sep + from, path + sep + name))',
      "{ closeSync(openSync(join(path, name), 'wx')); unlinkSync(join(path, from)); })",
      'a write makes its pointer and deletes the one before',
      'compare and swap',
    ],
    [
      'Math.max(numberIn(from) + 1, this.folder.clock.nowMicros())',
      'this.folder.clock.nowMicros()',
      'two writes of one microsecond have one number',
      'compare and swap',
    ],
    [
      '{ ...from, number: from.number + 1 }',
      'from',
      'a value that is moved keeps its number',
      'compare and swap',
    ],
    [
      'this.#move(path, from.name, value, { ...from',
      "this.#move(path, from.name, Buffer.from('{'), { ...from",
      'another value is moved',
      'sweeps',
    ],
    [
      'if (isRemoved) removeEmpty(path);',
      'if (isRemoved) rmSync(path, { recursive: true, force: true });',
      'a deletion takes a later record with it',
      'compare and swap',
    ],
    [
      'if (!isMoved) rmSync(aside, { recursive: true, force: true });',
      '',
      'what was made aside stays',
      'left behind',
    ],
  ),
  ...errorsIn('value-files', [
    'for (let done = 0; done < length; )\n      done +=',
    'for (let done = 0; done === 0; )\n      done +=',
    'a value is written in part',
    'values',
  ]),
  ...errorsIn(
    'folder-sweeper',
    [
      'return isIdle && number < this.#files.folder.clock.nowMicros() - IDLE_MICROS;',
      'return true;',
      'a record that is in use is swept',
      'sweeps',
    ],
    ['const IDLE_MICROS = 86_400_000_000;', 'const IDLE_MICROS = 1;', 'a record is idle at once', 'sweeps'],
    [
      'values.isFormer(name) || this.#isLeft(',
      'this.#isLeft(',
      'former files of a process stay',
      'left behind',
    ],
    ['this.#sweepAside();', '', 'what killed processes made aside stays', 'left behind'],
  ),
  ...errorsIn(
    'process-mark',
    ["code === 'ESRCH'", "code === 'EPERM'", 'a process that has ended counts as living', 'left behind'],
    [
      'return startsNow !== undefined && startsNow !== start;',
      'return true;',
      'a living process counts as ended',
      'values',
    ],
  ),
];
