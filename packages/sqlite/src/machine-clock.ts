import { type MachineClock, machineClock as clockOf } from '@locks/core/machine';
import { SqliteFileError } from './file-error.ts';

/** The clock that all processes of this machine share. */
export function machineClock(): MachineClock {
  return clockOf((says, cause) => new SqliteFileError('NO_BOOT_ID', says, { cause }));
}
