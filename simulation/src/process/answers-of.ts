import type { LockBackend } from '@locks/core/backend';
import type { SimulatedProcess } from './simulated-process.ts';

/** The backend, whose answers reach core when the process runs: it may have stopped behind the step that answers. */
export function answersOf(backend: LockBackend, process: SimulatedProcess): LockBackend {
  const whenItRuns = <T>(answer: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      answer.then(
        (value) => process.goOn(() => resolve(value)),
        (error: unknown) => process.goOn(() => reject(error)),
      );
    });
  return new Proxy(backend, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        const answer: unknown = Reflect.apply(value, target, given);
        return answer instanceof Promise ? whenItRuns(answer) : answer;
      };
    },
  });
}
