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

export interface FailedTest {
  readonly file: string;
  readonly title: string;
  /** With the first line of what was wrong. */
  readonly told: string;
}

/** More than this is not a matter of chance. */
const MOST = 5;

/**
 * The failed tests of a run, if a bound of time that a busy machine missed may explain them all; else none. Nothing
 * explains a violation of safety, a file that cannot be loaded, or many failures. An error that no test caught may be
 * what a failed test left behind, and counts by itself when there is none.
 */
export function chanceFailures(files: readonly TestFile[]): readonly FailedTest[] {
  const failed = files.filter(({ status }) => status === 'failed');
  const tests = failed.map(({ name: file, assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map((test) => ({ ...test, file })),
  );
  const all = tests.flat();
  const explained =
    all.length <= MOST &&
    tests.every((ofFile) => ofFile.length > 0) &&
    !all.some(({ failureMessages }) => failureMessages.some((text) => text.includes('SafetyViolation')));
  if (!explained) return [];
  return all.map(({ file, title, fullName, failureMessages: [message = ''] }) => {
    const [first = ''] = message.split('\n');
    return { file, title, told: `${fullName}: ${first}` };
  });
}

/** Arguments for vitest that select these tests, one at a time. */
export function selectionOf(tests: readonly FailedTest[]): string[] {
  const files = [...new Set(tests.map(({ file }) => file))];
  const titles = tests.map(({ title }) => title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return [...files, '-t', `(${titles.join('|')})$`, '--no-file-parallelism', '--maxConcurrency=1'];
}
