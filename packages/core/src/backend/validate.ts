import { describe, invalidArgument } from '../errors.ts';
import type { BackendFeature, LockBackend } from './types.ts';

const METHODS = ['attempt', 'abandon', 'renew', 'release', 'inspect', 'isRetryable', 'close'] as const;
const OPTIONAL_METHODS = ['attemptMany', 'awaitTurn', 'downgrade', 'resize', 'list', 'forceRelease'] as const;
const METHOD_OF_FEATURE: Partial<Record<BackendFeature, (typeof OPTIONAL_METHODS)[number]>> = {
  list: 'list',
  'force-release': 'forceRelease',
  many: 'attemptMany',
};
const CHOICES = {
  tenure: ['lease', 'session'],
  reach: ['process', 'host', 'network'],
  order: ['fifo', 'none'],
  fencing: ['durable', 'volatile', 'none'],
} as const;
const MODES = ['exclusive', 'shared', 'permit'];
const FEATURES = ['list', 'waiters', 'force-release', 'steal', 'many'];

/**
 * Refuses what is no backend, with everything that is wrong in one message.
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
  const faults = [...missingMethods(backend), ...badCapabilities(backend)];
  if (typeof backend.name !== 'string' || backend.name === '') faults.push('name must be a non-empty string');
  if (faults.length > 0) {
    throw invalidArgument(`The backend ${describe(backend.name)} is not usable: ${faults.join('; ')}.`);
  }
  return value as LockBackend;
}

function missingMethods(backend: Partial<LockBackend>): string[] {
  const missing = METHODS.filter((name) => typeof backend[name] !== 'function');
  const odd = OPTIONAL_METHODS.filter(
    (name) => backend[name] !== undefined && typeof backend[name] !== 'function',
  );
  return [
    ...missing.map((name) => `the method ${name} is missing`),
    ...odd.map((name) => `${name} must be a method or absent`),
  ];
}

function badCapabilities(backend: Partial<LockBackend>): string[] {
  const capabilities = backend.capabilities as Partial<NonNullable<LockBackend['capabilities']>> | undefined;
  if (typeof capabilities !== 'object' || capabilities === null) return ['capabilities is missing'];
  const faults: string[] = [];
  for (const [key, allowed] of Object.entries(CHOICES)) {
    const value = capabilities[key as keyof typeof CHOICES];
    if (!(allowed as readonly unknown[]).includes(value)) {
      faults.push(`capabilities.${key} must be one of ${allowed.join(', ')}, not ${describe(value)}`);
    }
  }
  faults.push(
    ...badList('modes', capabilities.modes, MODES),
    ...badList('features', capabilities.features, FEATURES),
  );
  if (Array.isArray(capabilities.modes) && capabilities.modes.length === 0)
    faults.push('capabilities.modes is empty');
  const { minMs, stepMs } = capabilities.ttl ?? {};
  if (!(Number.isInteger(minMs) && Number(minMs) > 0 && Number.isInteger(stepMs) && Number(stepMs) > 0)) {
    faults.push('capabilities.ttl needs minMs and stepMs, whole numbers above 0');
  }
  return [...faults, ...contradictions(backend)];
}

function badList(key: string, value: unknown, allowed: readonly string[]): string[] {
  if (!Array.isArray(value)) return [`capabilities.${key} must be an array`];
  return value
    .filter((entry) => !allowed.includes(entry as string))
    .map((entry) => `capabilities.${key} has ${describe(entry)}; known: ${allowed.join(', ')}`);
}

/** What is declared without its method, or a method that says it is not there. */
function contradictions(backend: Partial<LockBackend>): string[] {
  const { features, modes } = backend.capabilities ?? {};
  if (!Array.isArray(features) || !Array.isArray(modes)) return [];
  const needs = Object.entries(METHOD_OF_FEATURE).map(
    ([feature, method]) =>
      [`the feature '${feature}'`, features.includes(feature as BackendFeature), method] as const,
  );
  return [
    ...needs,
    [
      `the modes 'exclusive' and 'shared'`,
      modes.includes('exclusive') && modes.includes('shared'),
      'downgrade',
    ] as const,
    [`the mode 'permit'`, modes.includes('permit'), 'resize'] as const,
  ].flatMap(([what, declared, method]) => {
    if (declared === (typeof backend[method] === 'function')) return [];
    return [
      declared
        ? `it declares ${what} but has no method ${method}`
        : `it has the method ${method} but does not declare ${what}`,
    ];
  });
}
