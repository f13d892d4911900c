import type { BackendCapabilities, LockMode } from '@locks/core/backend';
import type { Quorum } from './quorum-options.ts';

export interface QuorumCapabilities extends BackendCapabilities {
  readonly tenure: 'lease';
  readonly renewal: 'own-client';
  readonly order: 'none';
  readonly fencing: 'none';
}

/** The capabilities that all nodes have. */
export function capabilitiesOf({ nodes }: Quorum): QuorumCapabilities {
  const all = nodes.map(({ capabilities }) => capabilities);
  // No permits: three nodes could grant three where there are two, since each counts only its own.
  const modes = (['exclusive', 'shared'] satisfies LockMode['kind'][]).filter((kind) =>
    all.every((one) => one.modes.includes(kind)),
  );
  const features = (['force-release', 'steal'] as const).filter((feature) =>
    all.every((one) => one.features.includes(feature)),
  );
  const reach = (['process', 'host', 'network'] as const).find((one) =>
    all.some((other) => other.reach === one),
  );
  const marginMs = Math.max(...all.map(({ ttl }) => ttl.marginMs ?? 0));
  return {
    tenure: 'lease',
    renewal: 'own-client',
    ...(all.some(({ expiry }) => expiry === 'observed') && { expiry: 'observed' }),
    reach: reach ?? 'network',
    modes,
    order: 'none',
    fencing: 'none',
    ttl: {
      minMs: Math.max(...all.map(({ ttl }) => ttl.minMs)),
      stepMs: all.map(({ ttl }) => ttl.stepMs).reduce(leastCommonMultiple),
      ...(marginMs > 0 && { marginMs }),
    },
    features,
  };
}

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}
