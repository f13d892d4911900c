import type { LockBackend } from '@locks/core/backend';
import { delegate, delegateLease, delegateLocks, overLeases, overLocks } from './delegate.ts';
import type { Mutant, PlantedMutant } from './mutant.ts';

/** Completes what a mutant changes by what it leaves as it is. */
export function planted({ name, says, expected, host = 'memory', ...mutant }: Mutant): PlantedMutant {
  const { backend, calls, locks, lock, lease } = mutant;
  return {
    ...{ name, says, expected, host },
    backend: (sound) => completed(sound, backend),
    // An argument that is no backend is left for core to refuse.
    calls: (sound) => (isBackend(sound) ? completed(sound, calls) : sound),
    locks(sound) {
      const changed = locks === undefined ? sound : delegateLocks(sound, locks(sound));
      const withLocks = lock === undefined ? changed : overLocks(changed, lock);
      if (lease === undefined) return withLocks;
      return overLeases(withLocks, (held) => {
        const broken = lease(held, withLocks);
        return broken === held ? held : delegateLease(held, broken);
      });
    },
  };
}

function completed(sound: LockBackend, change: Mutant['backend']): LockBackend {
  const changed = change?.(sound);
  if (changed === undefined) return sound;
  return 'spec' in changed ? (changed as LockBackend) : delegate(sound, changed);
}

function isBackend(backend: LockBackend | undefined): backend is LockBackend {
  const { attempt, awaitTurn = attempt } = (backend ?? {}) as Partial<LockBackend>;
  return typeof attempt === 'function' && typeof awaitTurn === 'function';
}
