import { readFileSync } from 'node:fs';
import { SqliteFileError } from './file-error.ts';

/** The clock that all processes of this machine share: monotonic, and good for one boot. */
export interface MachineClock {
  /** Names the boot. Differs after a restart of the machine where `bootIsExact`. */
  readonly boot: string;
  /** Whether another boot has another `boot`. Where not, leases of an earlier boot end by their ttl at the latest. */
  readonly bootIsExact: boolean;
  /** Microseconds; stands still while the machine sleeps, never steps. */
  nowMicros(): number;
}

const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';
const OFFSETS_FILE = '/proc/self/timens_offsets';

/** Reads which boot this is, from files of the system: so it is not done at import. */
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
    return readFileSync(BOOT_ID_FILE, 'utf8').trim();
  } catch (cause) {
    // Without it two processes could take one boot for two, and grant twice.
    throw new SqliteFileError(
      'NO_BOOT_ID',
      `cannot read ${BOOT_ID_FILE}, which separates leases of this boot from older ones: mount /proc in this container`,
      { cause },
    );
  }
}

/** A container can have its own monotonic clock (time_namespaces(7)): count in the machine's. */
function timeNamespaceOffsetMicros(): number {
  let text: string;
  try {
    text = readFileSync(OFFSETS_FILE, 'utf8');
  } catch {
    return 0; // a kernel without time namespaces
  }
  const match = /^monotonic\s+(-?\d+)\s+(\d+)/m.exec(text);
  return match === null ? 0 : Number(match[1]) * 1e6 + Math.trunc(Number(match[2]) / 1000);
}
