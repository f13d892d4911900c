/** What the schedules do not do or read of what a group of the suite's mutants changes: why some of them are not found. */
export const OUT_OF_REACH: Readonly<Record<string, string>> = {
  abort: 'no schedule aborts before its call, counts listeners, or aborts between two microtasks',
  all: 'no schedule reads the order of a set, names a lock twice, or counts the calls of a backend',
  'close-again': 'no schedule calls a backend that is closed',
  'close-calls': 'no schedule calls a backend that is closed',
  close: 'what holders do while a close gives them time is not checked, nor how often a backend is closed',
  exclusion: 'such names and clients are not drawn',
  'expiry-reported-end':
    'no schedule reads the end that a store reports; a lease there that lasts longer ends in time',
  expiry: 'no schedule asks for a least rest of a lease, or listens to events',
  'fairness-calls': 'the order of calls of one moment is lost on the way to the store',
  fairness:
    'the mutant changes the order of a queue in memory, and the stores of the simulation have their own',
  faults:
    'no schedule has a bad option, a backend that breaks its contract or a failure that stays, or listens to events',
  fencing: 'no schedule reads what a backend declares, or the token that a store keeps after a renewal',
  found: 'it takes a store with messages, or several leases of one renewal of which one is lost',
  idempotence:
    'it takes a repeated request in one moment of the lease, which these few schedules did not draw',
  names: 'the resources of a schedule are called r0 and r1',
  operator: 'no schedule reads what an operator is told',
  ownership: 'no schedule reads the errors of `run`, or whom a loss names',
  'permits-limits': 'the limits that live together are drawn too rarely for these few schedules',
  permits: 'no schedule has bad numbers; a resize is drawn too rarely for these few schedules',
  races: 'it takes two events of one moment',
  reentrancy: 'no schedule expects that a re-entry is refused, or counts the calls of a backend',
  renewal: 'no schedule counts renewals, limits a hold, or listens to events',
  session: 'no store of the simulation has sessions',
  'shared-late': 'readers that come so late are drawn too rarely for these few schedules',
  shared: 'no schedule reads the errors of readers, or waits at such a moment',
  steal: 'a steal is drawn too rarely for these few schedules',
  'unseen-ends': 'no schedule reads the end that a store reports',
  'waiting-many': 'a schedule has a dozen waiters at most',
  waiting: 'the mutant changes how often or when a waiter asks, and every schedule gets on all the same',
};
