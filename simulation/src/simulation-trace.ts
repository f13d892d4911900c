import { TraceEncoder } from '../../packages/history/src/trace-encoder.ts';
import type { World } from './kernel/world.ts';
import type { SimulatedProcess } from './process/simulated-process.ts';

/** The trace of a run, with true times. */
export class SimulationTrace {
  readonly #world: World;
  readonly #texts: string[][] = [];

  constructor(world: World) {
    this.#world = world;
  }

  follow(process: SimulatedProcess): void {
    const world = this.#world;
    const encoder = new TraceEncoder('store', (name) => name);
    const text = [encoder.begin(process.name, 'simulated', world.now, process.clock.wall())];
    this.#texts.push(text);
    process.onProtocol = (message) => {
      const { at, until = at } = message;
      text.push(encoder.line(world.now, message, world.now + process.clock.trueTime(until - at)));
    };
  }

  get text(): string {
    const losses = this.#world.losses.map(
      ({ from, until }) => `${JSON.stringify({ step: 'data-lost', time: from, until })}\n`,
    );
    return [...losses, ...this.#texts.flat()].join('');
  }
}
