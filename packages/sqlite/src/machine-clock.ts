import { readFileSync } from 'node:fs';
import { SqliteFileError } from './file-error.ts';

/** The clock that all processes of this machine share: monotonic, and good for one boot. */
export interface MachineClock {
  /** Names the boot. Differs after a restart of the machine where `bootIsExact`. */
  readonly boot: string;
  /** Whether `boot` tells boots apart. Where not, an earlier boot's leases end by their ttl at the latest. */
  readonly bootIsExact: boolean;
  /** Microseconds; stands still while the machine sleeps, never steps. */
  nowMicros(): number;
}

const bootIdFile = '/proc/sys/kernel/random/boot_id';
const offsetsFile = '/proc/self/timens_offsets';

/** Reads which boot this is. Not at import: it reads files of the system. */
export function machineClock(): MachineClock {
  if (process.platform !== 'linux') {
    return { boot: process.platform, bootIsExact: false, nowMicros: () => monotonicMicros() };
  }
  const offset = timeNamespaceOffsetMicros();
  return { boot: linuxBootId(), bootIsExact: true, nowMicros: () => monotonicMicros() - offset };
}

function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function linuxBootId(): string {
  try {
    return readFileSync(bootIdFile, 'utf8').trim();
  } catch (cause) {
    // Without it two processes could tell the same times apart as two boots, and grant twice.
    throw new SqliteFileError(
      'NO_BOOT_ID',
      `cannot read ${bootIdFile}, which tells leases of this boot from older ones: mount /proc in this container`,
      { cause },
    );
  }
}

/** A container can have its own monotonic clock (time_namespaces(7)): count in the machine's. */
function timeNamespaceOffsetMicros(): number {
  let text: string;
  try {
    text = readFileSync(offsetsFile, 'utf8');
  } catch {
    return 0; // a kernel without time namespaces
  }
  const match = /^monotonic\s+(-?\d+)\s+(\d+)/m.exec(text);
  return match === null ? 0 : Number(match[1]) * 1e6 + Math.trunc(Number(match[2]) / 1000);
}
