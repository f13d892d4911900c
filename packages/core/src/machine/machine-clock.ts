import { readFileSync } from 'node:fs';
import { systemClock } from './system-clock.ts';

/** The clock that all processes of this machine share: monotonic, and good for one boot. */
export interface MachineClock {
  /** The name of the boot. It differs after a restart of the machine if `bootIsExact`. */
  readonly boot: string;
  /** Whether another boot has another `boot`. If not, leases of an earlier boot end by their ttl at the latest. */
  readonly bootIsExact: boolean;
  /** The time in microseconds; it stands still while the machine sleeps and never steps. */
  nowMicros(): number;
}

const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';
const OFFSETS_FILE = '/proc/self/timens_offsets';

/**
 * Reads the name of the boot from files of the system, so it is not called at import.
 *
 * @param refusal - the error for a system that does not say which boot this is
 * @throws the error of `refusal`
 */
export function machineClock(refusal: (says: string, cause: unknown) => Error): MachineClock {
  const nowNs = systemClock(refusal);
  const monotonicMicros = (): number => Number(nowNs() / 1000n);
  if (process.platform !== 'linux') {
    return { boot: process.platform, bootIsExact: false, nowMicros: monotonicMicros };
  }
  const offset = timeNamespaceOffsetMicros();
  return { boot: linuxBootId(refusal), bootIsExact: true, nowMicros: () => monotonicMicros() - offset };
}

function linuxBootId(refusal: (says: string, cause: unknown) => Error): string {
  try {
    return readFileSync(BOOT_ID_FILE, 'utf8').trim();
  } catch (cause) {
    // A boot id is required: without it two processes could take one boot for two, and grant twice.
    throw refusal(
      `cannot read ${BOOT_ID_FILE}, which separates leases of this boot from older ones: mount /proc in this container`,
      cause,
    );
  }
}

/** The offset of this process's clock from the machine's: a container can have its own monotonic clock (time_namespaces(7)). */
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
