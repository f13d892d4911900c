import { expect, test } from 'vitest';
import { abortSignal } from '../../src/backend/abort-signal.ts';
import { codeOf, locksOn, rejectionOf } from '../fixture.ts';
import { contended, noAnswer, scriptedBackend } from '../scripted-backend.ts';

/** A signal as old polyfills have it. */
function polyfilled() {
  const listeners = new Set<() => void>();
  const signal = {
    aborted: false,
    reason: undefined as unknown,
    addEventListener: (_: string, listener: () => void) => void listeners.add(listener),
    removeEventListener: (_: string, listener: () => void) => void listeners.delete(listener),
  };
  const abort = (reason?: unknown): void => {
    Object.assign(signal, { aborted: true, reason });
    for (const listener of listeners) listener();
  };
  return { signal: signal as unknown as AbortSignal, abort };
}

const busy = () => locksOn(scriptedBackend({ attempt: async () => contended, awaitTurn: () => noAnswer() }));

test('a signal is passed on as it is', () => {
  const { signal } = new AbortController();
  expect(abortSignal(signal, 'signal')).toBe(signal);
});

test.each([undefined, null, 5, {}, { aborted: false }])('%j is refused', (value) => {
  expect(codeOf(() => abortSignal(value, 'signal'))).toBe('LOCK_INVALID_ARGUMENT');
});

test('an object with less than a signal has ends a wait, with its reason', async () => {
  const { signal, abort } = polyfilled();
  const acquiring = busy().lock('a').acquire({ signal });
  abort('enough');
  await expect(acquiring).rejects.toBe('enough');
});

test('one that gives no reason ends a wait as a signal would', async () => {
  const { signal, abort } = polyfilled();
  const locks = busy();
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).acquire({ signal });
  abort();
  await expect(acquiring).rejects.toMatchObject({ name: 'AbortError' });
});

test('one that has aborted before sends nothing', async () => {
  const { signal, abort } = polyfilled();
  abort(new Error('before'));
  const backend = scriptedBackend();
  await expect(
    locksOn(backend)
      .lock('a')
      .run(() => {}, { signal }),
  ).rejects.toThrow('before');
  expect(backend.sent).toEqual([]);
});

test('a release is not affected', async () => {
  const { signal, abort } = polyfilled();
  const lease = await locksOn(scriptedBackend()).lock('a').acquire({ signal });
  abort();
  expect(await rejectionOf(lease.release())).toBe('fulfilled');
});
