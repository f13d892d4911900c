import { ChangedMeanwhileError } from './etcd-errors.ts';

/** The number of tries of a write that depends on an earlier read, before the whole step fails. */
const TRIES = 20;

/**
 * Repeats a step until it has a result: `undefined` says that the store changed between its read and its write.
 *
 * @param message - of the error after the last try
 */
export async function retryWhileChanging<T>(message: string, step: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const result = await step();
    if (result !== undefined) return result;
  }
  throw new ChangedMeanwhileError(message);
}
