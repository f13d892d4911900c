import type { Runtime, Session } from 'node:inspector';
import type { StackMessage, ThreadData } from './messages.ts';
import { beatEveryMs, MAIN_BEAT, NS_PER_MS } from './shared-lease.ts';
import type { ThreadClock } from './thread-clock.ts';

/** How long the main thread may take to say its stack, in milliseconds. Native code does not, until it has ended. */
const ANSWER_MS = 500;

/** Takes, in the thread, the stack of what blocks the event loop, once for each block (docs/spec.md §20.9). */
export class BlockWatch {
  readonly #leases: { readonly shortestMs: number };
  readonly #clock: ThreadClock;
  readonly #cells: BigInt64Array;
  readonly #maxBlockedMs: number;
  readonly #port: NonNullable<ThreadData['stacks']>;
  /** The heartbeat before the last block that was looked at. */
  #before = 0n;

  constructor(
    leases: { readonly shortestMs: number },
    clock: ThreadClock,
    cells: BigInt64Array,
    maxBlockedMs: number,
    port: NonNullable<ThreadData['stacks']>,
  ) {
    this.#leases = leases;
    this.#clock = clock;
    this.#cells = cells;
    this.#maxBlockedMs = maxBlockedMs;
    this.#port = port;
  }

  async look(): Promise<void> {
    const beat = Atomics.load(this.#cells, MAIN_BEAT);
    if (beat === this.#before) return;
    const { shortestMs } = this.#leases;
    const silentMs = Number(this.#clock.now() - beat) / NS_PER_MS;
    if (silentMs < shortestMs / 3 + beatEveryMs(this.#maxBlockedMs, shortestMs)) return;
    this.#before = beat;
    const stack = await stackOfMainThread();
    // After another heartbeat it is the stack of something else.
    if (stack === undefined || Atomics.load(this.#cells, MAIN_BEAT) !== beat) return;
    this.#port.postMessage({ beat, stack } satisfies StackMessage);
  }
}

/**
 * What the main thread does now, as the stack of an error has it; `undefined` where it does not say so in time. An expression that the
 * inspector evaluates runs on top of the code that is interrupted for it: nothing is paused that would have to be resumed.
 */
async function stackOfMainThread(): Promise<string | undefined> {
  let session: Session | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    // Loaded here: Node may have been built without it.
    const inspector = await import('node:inspector');
    const opened = (session = new inspector.Session());
    opened.connectToMainThread();
    const stack = await new Promise<unknown>((resolve) => {
      timer = setTimeout(resolve, ANSWER_MS);
      const parameters = { expression: 'new Error().stack', returnByValue: true, silent: true };
      opened.post('Runtime.evaluate', parameters, (_error, answer) =>
        resolve((answer as Runtime.EvaluateReturnType | undefined)?.result.value),
      );
    });
    // Without the name of the error, and the frame of the expression.
    return (typeof stack === 'string' && stack.split('\n').slice(2).join('\n')) || undefined;
  } catch {
    // Bun and Deno have no such session, and the permission model of Node refuses one.
    return undefined;
  } finally {
    clearTimeout(timer);
    session?.disconnect();
  }
}
