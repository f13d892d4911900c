import { backends } from './clients.ts';
import { type Contender, ours } from './contender.ts';

/** In one process: the cost of core alone; and on one machine, in a file or a folder of files. */
export const localContenders: readonly Contender[] = (['memory', 'sqlite', 'file'] as const).map((name) =>
  ours({ store: 'local', name: `@locks/${name}`, floor: '' }, backends[name]),
);
