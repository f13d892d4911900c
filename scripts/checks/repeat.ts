/** As vitest's JSON reporter tells of it. */
export interface TestFile {
  readonly name: string;
  readonly status: 'passed' | 'failed';
  readonly assertionResults: readonly {
    readonly title: string;
    readonly fullName: string;
    readonly status: string;
    readonly failureMessages: readonly string[];
  }[];
}

export interface Failure {
  readonly file: string;
  /** Of the test; absent where the process of the whole file ended. */
  readonly title?: string;
  /** With the first line of what was wrong. */
  readonly told: string;
}

/** More than this is not a matter of chance. */
const MOST = 5;

/**
 * What failed in a run, if a bound of time that a busy machine missed, or a native module that ended the process, may
 * explain it all; else nothing. Not to be explained are a violation of safety, a file that cannot be loaded, and many
 * failures. An error that no test caught may be what a failed test left behind, and counts by itself when there is none.
 */
export function chanceFailures(files: readonly TestFile[], output: string): readonly Failure[] {
  const ended = [...output.matchAll(/Worker exited unexpectedly with (signal \w+) .*test file (.+)$/gm)].map(
    ([, signal, file = '']) => ({ file, told: `${file}: its process ended by ${signal}` }),
  );
  const failed = files
    .filter(({ name, status }) => status === 'failed' && !ended.some(({ file }) => file === name))
    .map(({ name: file, assertionResults }) =>
      assertionResults.filter(({ status }) => status === 'failed').map((test) => ({ ...test, file })),
    );
  const tests = failed.flat();
  const explained =
    tests.length + ended.length <= MOST &&
    failed.every((ofFile) => ofFile.length > 0) &&
    !tests.some(({ failureMessages }) => failureMessages.some((text) => text.includes('SafetyViolation')));
  if (!explained) return [];
  return [
    ...ended,
    ...tests.map(({ file, title, fullName, failureMessages: [message = ''] }) => {
      const [first = ''] = message.split('\n');
      return { file, title, told: `${fullName}: ${first}` };
    }),
  ];
}

/**
 * Arguments for vitest that select these tests, one at a time, or their files where one of them is a whole file: that has
 * hundreds of tests, which run beside each other as they always do.
 */
export function selectionOf(failures: readonly Failure[]): string[] {
  const files = [...new Set(failures.map(({ file }) => file))];
  const titles = failures.flatMap(({ title }) => title?.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&') ?? []);
  const alone = [...files, '--no-file-parallelism'];
  return titles.length < failures.length
    ? alone
    : [...alone, '--maxConcurrency=1', '-t', `(${titles.join('|')})$`];
}
