/**
 * A second judge of histories, for the tests: it looks for any order of the calls in which a lock that keeps every promise could have
 * answered as the history says. Exponential, and as simple as can be.
 */
import type { HistoryEvent, HistoryMode } from '../src/history-event.ts';

interface Step {
  readonly kind: 'acquire' | 'release' | 'loss' | 'crash';
  readonly id: string;
  readonly process: string;
  readonly mode: HistoryMode;
  readonly token: bigint | undefined;
  /** The step took effect between these times. */
  readonly from: number;
  readonly to: number;
  /** A step without a known outcome may never have taken effect. */
  readonly isOptional: boolean;
}

interface Owned {
  readonly owner: string;
  readonly mode: HistoryMode;
  readonly token: bigint | undefined;
  readonly count: number;
  /** Releases that may be answered though nothing is held any more: what they would release is unknown. */
  readonly credit: number;
  readonly ended: boolean;
  /** When the holder noted its loss: nothing that begins later is answered as if it had held. */
  readonly lostAt: number;
}

type State = ReadonlyMap<string, Owned>;

export interface Promises {
  readonly fenced: boolean;
  readonly reentrant: boolean;
}

/** Whether a lock that keeps its promises can have made the history of one resource. */
export function isPossible(events: readonly HistoryEvent[], promises: Promises): boolean {
  const steps = stepsOf(events);
  const foreign = steps.filter((step) => isForeign(step, steps));
  // What a process did to the hold of another one has an unknown outcome, or is a broken promise.
  if (foreign.some(({ isOptional }) => !isOptional)) return false;
  const own = steps.filter((step) => !foreign.includes(step));
  return search(new Map(), own, promises);
}

/** An acquisition belongs to the process that was first told that it holds, or else to the first that asked for it. */
function isForeign({ kind, id, process }: Step, steps: readonly Step[]): boolean {
  if (kind !== 'acquire' && kind !== 'release') return false;
  const entries = steps.filter((one) => one.id === id && one.kind === 'acquire');
  const told = entries.filter(({ isOptional }) => !isOptional).sort((a, b) => a.to - b.to);
  const owner = told[0] ?? entries.sort((a, b) => a.from - b.from)[0];
  return owner !== undefined && owner.process !== process;
}

function search(state: State, left: readonly Step[], promises: Promises): boolean {
  if (left.every(({ isOptional }) => isOptional)) return true;
  // Nothing may take effect after another step had to.
  const due = Math.min(...left.filter(({ isOptional }) => !isOptional).map(({ to }) => to));
  for (const step of left) {
    if (step.from > due) continue;
    const rest = left.filter((one) => one !== step);
    for (const next of afterStep(state, step, promises)) if (search(next, rest, promises)) return true;
  }
  return false;
}

function* afterStep(state: State, step: Step, promises: Promises): Generator<State> {
  const owned = state.get(step.id);
  const become = (value: Owned): State => new Map(state).set(step.id, value);
  if (owned !== undefined && step.from > owned.lostAt && step.kind !== 'crash') return;
  switch (step.kind) {
    case 'acquire':
      yield* afterAcquire(state, step, promises);
      return;
    case 'release': {
      if (owned === undefined) return;
      const credit = step.isOptional ? owned.credit + 1 : owned.credit;
      if (owned.count > 0)
        yield become({ ...owned, credit, count: owned.count - 1, ended: owned.count === 1 });
      if (!step.isOptional && owned.credit > 0) yield become({ ...owned, credit: owned.credit - 1 });
      return;
    }
    case 'loss':
      // A release that is under way may still be answered as if it had ended the hold.
      if (owned !== undefined)
        yield become({
          ...owned,
          count: 0,
          credit: owned.credit + owned.count,
          ended: true,
          lostAt: step.to,
        });
      return;
    case 'crash': {
      const next = new Map(state);
      for (const [id, one] of state)
        if (one.owner === step.process) next.set(id, { ...one, count: 0, ended: true });
      yield next;
      return;
    }
    default:
      step.kind satisfies never;
  }
}

function* afterAcquire(state: State, step: Step, { fenced, reentrant }: Promises): Generator<State> {
  const owned = state.get(step.id);
  const become = (value: Owned): State => new Map(state).set(step.id, value);
  if (step.isOptional) {
    const nothing = {
      ...step,
      owner: step.process,
      count: 0,
      credit: 0,
      ended: false,
      lostAt: Number.POSITIVE_INFINITY,
    };
    yield become({ ...(owned ?? nothing), credit: (owned?.credit ?? 0) + 1 });
    return;
  }
  if (owned !== undefined && owned.ended) return;
  if (owned !== undefined && owned.count > 0) {
    const isAllowed =
      reentrant &&
      owned.token === step.token &&
      (owned.mode.kind === 'exclusive' || owned.mode.kind === step.mode.kind);
    if (isAllowed) yield become({ ...owned, count: owned.count + 1 });
    return;
  }
  if (fenced && step.token === undefined) return;
  let permits = step.mode.kind === 'permit' ? step.mode.weight : 0;
  for (const other of state.values()) {
    if (other.count > 0) {
      if (other.mode.kind === 'permit' && step.mode.kind === 'permit') {
        if (other.mode.limit !== step.mode.limit) return;
        permits += other.mode.weight;
      } else if (excludes(other.mode, step.mode)) return;
    } else if (other.ended && excludes(other.mode, step.mode)) {
      if (other.token !== undefined && step.token !== undefined && other.token >= step.token) return;
    }
  }
  if (step.mode.kind === 'permit' && permits > step.mode.limit) return;
  const { process: owner, mode, token } = step;
  yield become({
    owner,
    mode,
    token,
    count: 1,
    credit: owned?.credit ?? 0,
    ended: false,
    lostAt: Number.POSITIVE_INFINITY,
  });
}

function excludes(earlier: HistoryMode, later: HistoryMode): boolean {
  if (earlier.kind === 'exclusive' || later.kind === 'exclusive') return true;
  if (earlier.kind === 'permit' && later.kind === 'permit')
    return earlier.weight + later.weight > later.limit;
  return earlier.kind !== later.kind;
}

function stepsOf(events: readonly HistoryEvent[]): Step[] {
  const steps: Step[] = [];
  for (const begin of events) {
    const { operation: kind, process, time, mode = { kind: 'exclusive' } } = begin;
    const common = {
      kind,
      process,
      mode,
      token: undefined,
      id: begin.acquisitionId ?? '',
      isOptional: false,
    };
    if (kind === 'crash') {
      steps.push({ ...common, from: time, to: Number.POSITIVE_INFINITY, isOptional: true });
    } else if (kind === 'loss') {
      steps.push({ ...common, from: begin.endedAt ?? time, to: time });
    } else if (begin.type === 'invoke') {
      const isOutcome = (one: HistoryEvent) =>
        one.type !== 'invoke' && one.process === process && one.id === begin.id;
      const outcome = events.find(isOutcome);
      const id = outcome?.acquisitionId ?? begin.acquisitionId;
      if (id === undefined || outcome?.type === 'fail') continue;
      const isOptional = outcome?.type !== 'ok';
      const to = isOptional || outcome === undefined ? Number.POSITIVE_INFINITY : outcome.time;
      const token = outcome?.token === undefined ? undefined : BigInt(outcome.token);
      steps.push({ ...common, id, token, from: time, to, isOptional });
    }
  }
  return steps;
}
