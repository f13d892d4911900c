import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** Below this load a machine has nothing else to do. */
const QUIET_LOAD = 0.3;
const LOOK_MS = 5_000;
const LIMIT_MS = 120_000;

interface QuietOptions {
  readonly loadNow?: () => number;
  readonly lookMs?: number;
  readonly limitMs?: number;
}

/** Waits for up to two minutes until nothing else runs here. Gives whether that came true. */
export async function untilQuiet(
  say: (text: string) => void,
  { loadNow = () => loadavg()[0] ?? 0, lookMs = LOOK_MS, limitMs = LIMIT_MS }: QuietOptions = {},
): Promise<boolean> {
  const endsAt = performance.now() + limitMs;
  for (let isFirst = true; ; isFirst = false) {
    const load = loadNow();
    if (load < QUIET_LOAD) return true;
    if (performance.now() + lookMs > endsAt) return false;
    if (isFirst)
      say(`waits until the load, ${load.toFixed(2)}, is below ${QUIET_LOAD}; ${limitMs / 1_000} s at most`);
    await sleep(lookMs);
  }
}
