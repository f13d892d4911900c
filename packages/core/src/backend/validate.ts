import { describe, invalidArgument } from '../errors.ts';
import type { LockBackend } from './types.ts';

const METHODS = ['attempt', 'abandon', 'renew', 'release', 'inspect', 'isRetryable', 'close'] as const;
const OPTIONAL_METHODS = [
  'attemptMany',
  'awaitTurn',
  'downgrade',
  'resize',
  'list',
  'forceRelease',
  'ping',
] as const;
/** Optional methods, and the capabilities that each of them needs and is needed for. */
const METHODS_OF_CAPABILITIES = [
  ['list', 'the feature', 'list'],
  ['forceRelease', 'the feature', 'force-release'],
  ['attemptMany', 'the feature', 'many'],
  ['downgrade', 'the modes', 'exclusive', 'shared'],
  ['resize', 'the mode', 'permit'],
] as const;
const CHOICES = {
  tenure: ['lease', 'session'],
  reach: ['process', 'host', 'network'],
  order: ['fifo', 'none'],
  fencing: ['durable', 'volatile', 'none'],
};
const LISTS = {
  modes: ['exclusive', 'shared', 'permit'],
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
};

/**
 * Refuses an object that is no backend, with everything that is wrong in one message.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function checkBackend(value: unknown): LockBackend {
  if (typeof value !== 'object' || value === null) {
    throw invalidArgument(
      `createLocks() takes a backend, not ${describe(value)}. For example: redisBackend(client).`,
    );
  }
  const backend = value as Partial<LockBackend>;
  if (backend.spec !== 'locks-backend/1') {
    throw invalidArgument(
      `createLocks() takes a backend with spec 'locks-backend/1', not ${describe(value)} with spec ` +
        `${describe(backend.spec)}. A client must be wrapped: redisBackend(client).`,
    );
  }
  const faults = [...faultsOfMethods(backend), ...faultsOfCapabilities(backend)];
  if (typeof backend.name !== 'string' || backend.name === '') faults.push('name must be a non-empty string');
  if (faults.length > 0) {
    throw invalidArgument(`The backend ${describe(backend.name)} is not usable: ${faults.join('; ')}.`);
  }
  return value as LockBackend;
}

function faultsOfMethods(backend: Partial<LockBackend>): string[] {
  const isMethod = (name: keyof LockBackend): boolean => typeof backend[name] === 'function';
  const missing = METHODS.filter((name) => !isMethod(name));
  const odd = OPTIONAL_METHODS.filter((name) => backend[name] !== undefined && !isMethod(name));
  return [
    ...missing.map((name) => `the method ${name} is missing`),
    ...odd.map((name) => `${name} must be a method or absent`),
  ];
}

function faultsOfCapabilities(backend: Partial<LockBackend>): string[] {
  const capabilities = backend.capabilities as Readonly<Record<string, unknown>> | null | undefined;
  if (typeof capabilities !== 'object' || capabilities === null) return ['capabilities is missing'];
  const faults: string[] = [];
  for (const [key, allowed] of Object.entries(CHOICES)) {
    const value = capabilities[key];
    if (!allowed.includes(value as string))
      faults.push(`capabilities.${key} must be one of ${allowed.join(', ')}, not ${describe(value)}`);
  }
  const declared: unknown[] = [];
  for (const [key, allowed] of Object.entries(LISTS)) {
    const list = capabilities[key];
    if (!Array.isArray(list)) {
      faults.push(`capabilities.${key} must be an array`);
      continue;
    }
    declared.push(...list);
    for (const entry of list) {
      if (allowed.includes(entry)) continue;
      faults.push(`capabilities.${key} has ${describe(entry)}; known: ${allowed.join(', ')}`);
    }
    if (key === 'modes' && list.length === 0) faults.push('capabilities.modes is empty');
  }
  const { minMs, stepMs } = (capabilities.ttl ?? {}) as { minMs?: unknown; stepMs?: unknown };
  if (![minMs, stepMs].every((ms) => Number.isInteger(ms) && Number(ms) > 0))
    faults.push('capabilities.ttl needs minMs and stepMs, whole numbers above 0');
  for (const [method, kind, ...names] of METHODS_OF_CAPABILITIES) {
    const isDeclared = names.every((name) => declared.includes(name));
    if (isDeclared === (typeof backend[method] === 'function')) continue;
    const what = `${kind} ${names.map((name) => `'${name}'`).join(' and ')}`;
    faults.push(
      isDeclared
        ? `it declares ${what} but has no method ${method}`
        : `it has the method ${method} but does not declare ${what}`,
    );
  }
  return faults;
}
