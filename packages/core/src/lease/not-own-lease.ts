import { invalidArgument, type LockError, mustBe } from '../errors.ts';

/** The refusal of what is no lease that this copy of core made. A process may have two: as modules and CommonJS, or in two versions. */
export function notOwnLease(what: string, value: unknown): LockError {
  // The getters of a lease throw on what only inherits from one: they are looked for, and not read.
  if ('acquisitionId' in Object(value)) {
    return invalidArgument(
      `${what} comes from another copy of @locks/core, or is wrapped. Import both from one copy: npm ls @locks/core shows them.`,
    );
  }
  if ('leases' in Object(value))
    return invalidArgument(`${what} must be one lease, not a multi-lease: take one of its leases.`);
  return mustBe(what, 'a lease, as acquire() and run() give it', value);
}
