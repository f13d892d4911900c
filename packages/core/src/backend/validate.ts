import { describe, invalidArgument } from '../errors.ts';
import type { LockBackend } from './types.ts';

const METHODS = ['attempt', 'abandon', 'renew', 'release', 'inspect', 'isRetryable', 'close'] as const;
/** Optional methods, and the capabilities that each of them needs and is needed for. */
const OPTIONAL_METHODS = {
  awaitTurn: undefined,
  ping: undefined,
  prepare: undefined,
  connectionError: undefined,
  isClientClosed: undefined,
  list: ['the feature', 'list'],
  forceRelease: ['the feature', 'force-release'],
  attemptMany: ['the feature', 'many'],
  downgrade: ['the modes', 'exclusive', 'shared'],
  resize: ['the mode', 'permit'],
} as const;
const CHOICES = {
  tenure: ['lease', 'session'],
  expiry: ['clock', 'observed'],
  renewal: ['any-client', 'own-client'],
  reach: ['process', 'host', 'network'],
  order: ['fifo', 'cohort', 'none'],
  fencing: ['durable', 'volatile', 'none'],
};
const LISTS = {
  modes: ['exclusive', 'shared', 'permit'],
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters', 'many'],
};

/**
 * Refuses an object that is no backend, with everything that is wrong in one message.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function checkBackend(value: unknown): LockBackend {
  const backend = (value ?? {}) as Partial<LockBackend>;
  if (backend.spec !== 'locks-backend/1') {
    const spec = backend.spec === undefined ? '' : ` with spec ${describe(backend.spec)}`;
    throw invalidArgument(
      `createLocks() takes a backend, as redisBackend(client) returns it, not ${describe(value)}${spec}.`,
    );
  }
  const faults = faultsOf(backend);
  if (faults.length > 0)
    throw invalidArgument(`The backend ${describe(backend.name)} is not usable: ${faults.join('; ')}.`);
  return value as LockBackend;
}

function faultsOf(backend: Partial<LockBackend>): string[] {
  const faults: string[] = [];
  const demand = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault);
  };
  demand(typeof backend.name === 'string' && backend.name !== '', 'name must be a non-empty string');
  for (const name of METHODS) demand(typeof backend[name] === 'function', `the method ${name} is missing`);
  const capabilities = backend.capabilities as Readonly<Record<string, unknown>> | null | undefined;
  if (typeof capabilities !== 'object' || capabilities === null)
    return [...faults, 'capabilities is missing'];
  for (const [key, allowed] of Object.entries(CHOICES)) {
    const value = { expiry: 'clock', ...capabilities }[key];
    const what = `capabilities.${key} must be one of ${allowed.join(', ')}`;
    demand(allowed.includes(value as string), `${what}, not ${describe(value)}`);
  }
  const declared: unknown[] = [];
  for (const [key, known] of Object.entries(LISTS)) {
    const list = capabilities[key];
    const entries: unknown[] = Array.isArray(list) ? list : [];
    demand(
      entries === list && (key !== 'modes' || entries.length > 0),
      `capabilities.${key} must be an array${key === 'modes' ? ' that is not empty' : ''}`,
    );
    for (const entry of entries)
      demand(
        known.includes(entry as string),
        `capabilities.${key} has ${describe(entry)}; known: ${known.join(', ')}`,
      );
    declared.push(...entries);
  }
  const { minMs, stepMs, marginMs = 0 } = (capabilities.ttl ?? {}) as Readonly<Record<string, unknown>>;
  demand(
    [minMs, stepMs].every((ms) => Number.isInteger(ms) && Number(ms) > 0),
    'capabilities.ttl needs minMs and stepMs, whole numbers above 0',
  );
  demand(
    Number.isFinite(marginMs) && Number(marginMs) >= 0,
    `capabilities.ttl.marginMs must be a number from 0, not ${describe(marginMs)}`,
  );
  for (const [name, needs] of Object.entries(OPTIONAL_METHODS)) {
    const method = backend[name as keyof typeof OPTIONAL_METHODS];
    demand(method === undefined || typeof method === 'function', `${name} must be a method or absent`);
    if (needs === undefined) continue;
    const [kind, ...names] = needs;
    const what = `${kind} ${names.map((one) => `'${one}'`).join(' and ')}`;
    const isDeclared = names.every((one) => declared.includes(one));
    demand(!isDeclared || method !== undefined, `it declares ${what} but has no method ${name}`);
    demand(isDeclared || method === undefined, `it has the method ${name} but does not declare ${what}`);
  }
  return faults;
}
