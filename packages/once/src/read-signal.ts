import { matching } from '@locks/core/backend';

export const readSignal = matching('an AbortSignal', isSignal);

function isSignal(value: unknown): value is AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  return typeof signal?.aborted === 'boolean' && typeof signal.addEventListener === 'function';
}
