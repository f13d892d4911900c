/** A search of the model: every order of events within its scope. */
export interface ModelRun {
  readonly name: string;
  /** The scope, as macros of model/lock.pml. */
  readonly defines: Readonly<Record<string, number>>;
  /** `states`: no assertion fails in any state. `cycles`: every run also comes to an end (docs/spec.md §7.3). */
  readonly search: 'states' | 'cycles';
  /** Worth seconds of the compiler: millions of states. */
  readonly isLarge?: boolean;
  /** A hash of 64 bits of each state is kept in its place: hundreds of millions fit into memory. */
  readonly isHashed?: boolean;
}

const allFaults = { CRASHES: 1, LOSSES: 1, PAUSES: 1 };
const noFaults = { CRASHES: 0, LOSSES: 0, PAUSES: 0, RENEWALS: 0 };

/** What `npm test` searches. */
export const runs: readonly ModelRun[] = [
  {
    name: '3 processes × 2 acquisitions, a crash',
    defines: { PROCESSES: 3, ACQUISITIONS: 2, ...noFaults, CRASHES: 1 },
    search: 'states',
  },
  {
    name: '3 processes × 2 acquisitions, a loss',
    defines: { PROCESSES: 3, ACQUISITIONS: 2, ...noFaults, LOSSES: 1 },
    search: 'states',
    isLarge: true,
  },
  {
    name: '3 processes × 2 acquisitions, a pause',
    defines: { PROCESSES: 3, ACQUISITIONS: 2, ...noFaults, PAUSES: 1 },
    search: 'states',
    isLarge: true,
  },
  {
    name: '2 processes × 2 acquisitions, a crash, a loss and a pause',
    defines: { PROCESSES: 2, ACQUISITIONS: 2, ...allFaults },
    search: 'states',
    isLarge: true,
  },
  {
    name: '2 processes × 1 acquisition, a crash, a loss, a pause and an abort',
    defines: { PROCESSES: 2, ACQUISITIONS: 1, ...allFaults, ABORTS: 1 },
    search: 'cycles',
  },
  {
    name: '3 processes × 1 acquisition, a crash and a loss',
    defines: { PROCESSES: 3, ACQUISITIONS: 1, ...allFaults, PAUSES: 0 },
    search: 'cycles',
  },
  {
    name: '3 processes × 1 acquisition, a crash and a pause',
    defines: { PROCESSES: 3, ACQUISITIONS: 1, ...allFaults, LOSSES: 0 },
    search: 'cycles',
  },
];

/** What `npm run model -- --full` searches as well: minutes. */
export const longRuns: readonly ModelRun[] = [
  {
    name: '3 processes × 1 acquisition, a crash, a loss and a pause',
    defines: { PROCESSES: 3, ACQUISITIONS: 1, ...allFaults },
    search: 'states',
    isLarge: true,
  },
  {
    name: '3 processes × 2 acquisitions, a crash',
    defines: { PROCESSES: 3, ACQUISITIONS: 2, ...noFaults, CRASHES: 1 },
    search: 'cycles',
  },
  {
    name: '2 processes × 2 acquisitions, a crash, a loss, a pause and an abort',
    defines: { PROCESSES: 2, ACQUISITIONS: 2, ...allFaults, ABORTS: 1 },
    search: 'states',
    isLarge: true,
  },
];

/**
 * The largest scope, which `npm run model -- --full` searches last: half an hour and 6 GB. Every planted error is found in it too; that of
 * renewals (4) with one renewal added.
 */
export const largestRun: ModelRun = {
  name: '3 processes × 2 acquisitions, a crash, a loss and a pause',
  defines: { PROCESSES: 3, ACQUISITIONS: 2, ...allFaults, RENEWALS: 0 },
  search: 'states',
  isLarge: true,
  isHashed: true,
};

/** An error that is planted in the model, by the macro PLANTED: the checker must find it. */
export interface PlantedError {
  readonly number: number;
  /** The name of its counterexample in model/planted. */
  readonly file: string;
  readonly what: string;
  readonly search: ModelRun['search'];
}

export const plantedErrors: readonly PlantedError[] = [
  [1, 'release-of-others', 'a release ends the hold of whoever holds', 'states'],
  [
    2,
    'attempt-counted-from-reply',
    'the lease of an attempt or a first renewal is counted from the reply',
    'states',
  ],
  [3, 'message-counted-from-arrival', 'the lease of a message is counted from its arrival', 'states'],
  [4, 'renewal-counted-from-reply', 'the end after a renewal is counted from the reply', 'states'],
  [5, 'no-flag', 'an attempt that joins the queue does not set the flag at the lock key', 'states'],
  [6, 'check-serves-nobody', 'a check does not serve a queue whose lock is free', 'cycles'],
  [7, 'no-horizon', 'the token key does not show that a queue exists', 'states'],
  [8, 'hand-off-keeps-entry', 'a hand-off leaves its waiter in the queue', 'cycles'],
  [9, 'token-not-raised', 'a hand-off with waiters behind it keeps the former token', 'states'],
  [10, 'check-restores-nobody', 'a check does not put a waiter back into the queue', 'cycles'],
  [11, 'abandon-serves-nobody', 'an abandon does not serve the waiters behind', 'states'],
  [12, 'late-message-abandons', 'a late message to an acquisition that holds is taken for a ghost', 'states'],
  [13, 'old-message-believed', 'a message of a hand-off that lapsed is believed', 'states'],
  [14, 'later-grant-confirmed', 'a first renewal confirms a later grant of the same acquisition', 'states'],
].map(([number, file, what, search]) => ({ number, file, what, search }) as PlantedError);
