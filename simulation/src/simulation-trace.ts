import { TraceEncoder } from '../../packages/history/src/trace-encoder.ts';
import type { World } from './kernel/world.ts';
import type { SimulatedProcess } from './process/simulated-process.ts';

/** The trace of a run, with true times. */
export class SimulationTrace {
  readonly #world: World;
  readonly #traced: {
    readonly process: SimulatedProcess;
    readonly lines: string[];
    readonly encoder: TraceEncoder;
  }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  follow(process: SimulatedProcess): void {
    const world = this.#world;
    const encoder = new TraceEncoder('store', (name) => name);
    const lines = [encoder.begin(process.name, 'simulated', world.now, process.clock.wall())];
    this.#traced.push({ process, lines, encoder });
    process.onProtocol = (message) => {
      const { at, until = at } = message;
      lines.push(encoder.line(world.now, message, world.now + process.clock.trueTime(until - at)));
    };
  }

  get text(): string {
    const losses = this.#world.losses.map(
      // JSON has no infinity.
      ({ from, until }) =>
        `${JSON.stringify({ step: 'data-lost', time: from, until: Math.min(until, Number.MAX_SAFE_INTEGER) })}\n`,
    );
    const { now } = this.#world;
    const texts = this.#traced.map(
      ({ process, lines, encoder }) => lines.join('') + (process.isCrashed ? '' : encoder.end(now)),
    );
    return [...losses, ...texts].join('');
  }
}
