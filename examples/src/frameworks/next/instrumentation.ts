/** Next.js, `instrumentation.ts`: with `NEXT_MANUAL_SIG_HANDLE=true`, since Next.js would end the process by itself. */
import { shared } from './locks.ts';

export function register(): void {
  process.once('SIGTERM', () => void end());
}

async function end(): Promise<void> {
  const { locks, redis } = shared();
  // What holds a lock, requests included, has 20 s to end.
  await locks.close({ drainMs: 20_000 });
  await redis.quit();
  // The answers of those requests are written in the next iterations of the event loop.
  setTimeout(() => process.exit(0), 1_000);
}
