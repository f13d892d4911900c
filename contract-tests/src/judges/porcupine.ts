import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { HistoryExpectation } from '@locks/history';

/** What Porcupine says of a lock of a history. */
export interface PorcupineVerdict {
  readonly file: string;
  readonly lock: string;
  readonly calls: number;
  /** The weakest model that refuses the history, or else the strongest one. */
  readonly model: string;
  readonly result: 'Ok' | 'Illegal' | 'Unknown';
}

const run = promisify(execFile);
const sources = fileURLToPath(new URL('../../porcupine/', import.meta.url));
const judge = fileURLToPath(new URL('../../../.tools/judges/judge', import.meta.url));

/** Builds the judge; Go brings what it needs. */
export async function buildPorcupine(): Promise<void> {
  await run('go', ['build', '-o', judge, '.'], { cwd: sources });
}

/** Judges histories in the EDN of Jepsen. */
export async function judgeByPorcupine(
  files: readonly string[],
  expectations: readonly HistoryExpectation[],
): Promise<PorcupineVerdict[]> {
  const args = [...expectations.map((one) => `-${one}`), ...files];
  const { stdout } = await run(judge, args, { maxBuffer: 1 << 30 });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as PorcupineVerdict);
}
