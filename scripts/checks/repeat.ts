// Own code: vitest repeats a failed test at once, beside the same neighbours: docs/adr/0009-failures-repeated-alone.md.
/** A test file in the report of vitest's JSON reporter. */
export interface TestFile {
  readonly name: string;
  readonly status: 'passed' | 'failed';
  readonly assertionResults: readonly {
    readonly title: string;
    readonly ancestorTitles: readonly string[];
    readonly fullName: string;
    readonly status: string;
    readonly failureMessages: readonly string[];
  }[];
}

export interface Failure {
  readonly file: string;
  /** The title of the test; absent where the process of the whole file ended. */
  readonly title?: string;
  /** The test with the first line of its error. */
  readonly summary: string;
}

/**
 * More than sixteen failures, or in a large step more than one of 100 tests, are not a matter of chance. A machine that stands
 * still once fails what is under way: two files with eight tests each.
 */
const MOST = 16;
const MOST_SHARE = 1 / 100;

/**
 * The failures of a run, if a time limit that a busy machine missed, or a native module that ended the process, may explain
 * all of them; else none. A violation of safety, a file that cannot be loaded, and many failures are never explained so. An
 * error that no test caught may come from a failed test; where no test failed, it counts.
 */
export function chanceFailures(files: readonly TestFile[], output: string): readonly Failure[] {
  const ended = [...output.matchAll(/Worker exited unexpectedly with (signal \w+) .*test file (.+)$/gm)].map(
    ([, signal, file = '']) => ({ file, summary: `${file}: its process ended by ${signal}` }),
  );
  const failed = files
    .filter(({ name, status }) => status === 'failed' && !ended.some(({ file }) => file === name))
    .map(failedTests);
  const tests = failed.flat();
  const count = files.reduce((sum, { assertionResults }) => sum + assertionResults.length, 0);
  const explained =
    tests.length + ended.length <= Math.max(MOST, count * MOST_SHARE) &&
    failed.every((ofFile) => ofFile.length > 0) &&
    !tests.some(({ failureMessages }) => failureMessages.some((text) => text.includes('SafetyViolation')));
  if (!explained) return [];
  return [...ended, ...tests.map(({ file, title, summary }) => ({ file, title, summary }))];
}

/** The failed tests of a file. */
export function failedTests({
  name: file,
  assertionResults,
}: TestFile): (Failure & { title: string; path: string; failureMessages: readonly string[] })[] {
  return assertionResults
    .filter(({ status }) => status === 'failed')
    .map(({ title, ancestorTitles, fullName, failureMessages }) => {
      const [message = ''] = failureMessages;
      const path = [...ancestorTitles, title].join(' > ');
      return { file, title, path, failureMessages, summary: `${fullName}: ${message.split('\n')[0]}` };
    });
}

/**
 * Arguments for vitest that select these tests, to run one at a time, or their files where one failure is of a whole file:
 * that has hundreds of tests, which run concurrently as they always do.
 */
export function selectionOf(failures: readonly Failure[]): string[] {
  const files = [...new Set(failures.map(({ file }) => file))];
  const titles = failures.flatMap(({ title }) => (title === undefined ? [] : patternOf(title)));
  const alone = [...files, '--no-file-parallelism'];
  return titles.length < failures.length
    ? alone
    : [...alone, '--maxConcurrency=1', '-t', `(${titles.join('|')})$`];
}

/** What `-t` takes to find this text; the suite has another seed in each run. */
export function patternOf(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/seed \d+/, String.raw`seed \d+`);
}
