import type { PlantedError } from './planted-error.ts';

const found: readonly Omit<PlantedError, 'variant'>[] = [
  {
    backend: 'rules',
    what: 'a thread renews beyond the longest block',
    seed: 76,
    change: {
      file: 'core/src/renewal-thread/lease-keeper.ts',
      from: 'if (silentMs > this.#maxBlockedMs) {',
      to: 'if (false) {',
    },
  },
  {
    backend: 'rules',
    what: 'nobody reads what the thread has confirmed',
    seed: 52,
    change: {
      file: 'core/src/renewal-thread/thread-lease.ts',
      from: 'return this.kept?.validUntil ?? super.keptUntil;',
      to: 'return super.keptUntil;',
    },
  },
  {
    backend: 'rules',
    what: 'the event loop does not renew what the thread does not',
    seed: 2_233,
    change: {
      file: 'core/src/renewal-thread/thread-lease.ts',
      from: '    monitor.isLate();\n    this.letGo();\n    return false;',
      to: '    return true;',
    },
  },
  {
    backend: 'redis',
    what: 'a steal that is refused serves nobody',
    seed: 501_539,
    change: {
      file: 'redis-protocol/src/scripts/acquire.lua',
      from: '  if takes_over then served = serve_and_read(request, reply_address) end\n',
      to: '',
    },
  },
];

/** What runs with a renewal thread bring to light. */
export const errorsOfThreads: readonly PlantedError[] = found.map((error) => ({
  ...error,
  variant: 'thread',
}));
