import type { ResourceState } from './backend/types.ts';
import type { Engine } from './engine.ts';

/** Operators' calls are given up after this. */
export const OPERATOR_CALL_MS = 10_000;

export function inspectResource(
  engine: Engine,
  name: string,
  limitMs = OPERATOR_CALL_MS,
): Promise<ResourceState> {
  return engine.ask('inspect', name, limitMs, (call) => engine.backend.inspect(name, call));
}
