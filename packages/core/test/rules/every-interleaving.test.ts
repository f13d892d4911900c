import { expect, it } from 'vitest';
import { type LockRecord, LockRules, type RulesRequest } from '../../src/rules/index.ts';

/** A request on its way: to the store, or back from it with a reply. */
interface Call {
  readonly kind: 'attempt' | 'first renewal' | 'renew' | 'release' | 'abandon';
  readonly id: string;
  /** The token of the grant that is renewed, or that the reply has; 0: none. */
  token: number;
  reply?: 'holds' | 'holds not';
  /** The time of the grant in the reply is over: it counts from before the store began it (docs/spec.md §1.2). */
  isOver?: true;
}

interface Process {
  phase: 'idle' | 'asks' | 'waits' | 'holds' | 'ends' | 'done' | 'dead';
  round: number;
  /** The token of the lease that the process believes in; 0: none. */
  lease: number;
  /** Whether the store counts the waiters of the process as alive. */
  isAlive: boolean;
  call?: Call;
}

/** How often what may happen: a request or reply is lost or late, a process dies or stands still, a renewal, an abort. */
interface Budget {
  losses: number;
  deaths: number;
  pauses: number;
  renewals: number;
  aborts: number;
}

interface State {
  readonly record: LockRecord;
  readonly processes: Process[];
  /** Attempts of which their process has heard nothing, and which the store may still carry out. */
  readonly late: Call[];
  /** The highest token that a lease began with. */
  highest: number;
  readonly budget: Budget;
}

interface Scope {
  readonly processes: number;
  /** Acquisitions of each process, one after the other. */
  readonly rounds: number;
  readonly budget: Partial<Budget>;
}

type Step = (next: State) => void;

const NOW = 1_000;
const EXCLUSIVE = { kind: 'exclusive' } as const;

/**
 * Takes every step of every process, of the network, the store and time in every order, breadth first. Time has no numbers: the lease of
 * a grant ends before the store ends the grant. Gives the number of states.
 *
 * @throws Error where two believe that they hold, a token does not rise, a waiter is passed over or forgotten
 */
function walk(Rules: typeof LockRules, { processes: count, rounds, budget }: Scope): number {
  const start: State = {
    record: { token: 0, holds: [], waiters: [] },
    processes: Array.from({ length: count }, () => ({ phase: 'idle', round: 0, lease: 0, isAlive: true })),
    late: [],
    highest: 0,
    budget: { losses: 0, deaths: 0, pauses: 0, renewals: 0, aborts: 0, ...budget },
  };
  /** The states from which each state is reached. */
  const formers = new Map<string, string[]>([[JSON.stringify(start), []]]);
  const finals: string[] = [];
  // The map grows while it is walked.
  for (const [key] of formers) {
    const state = JSON.parse(key) as State;
    if (state.processes.every(({ phase }) => phase === 'done' || phase === 'dead')) finals.push(key);
    for (const step of stepsFrom(state, rounds, Rules)) {
      const next = JSON.parse(key) as State;
      step(next);
      const reached = JSON.stringify(next);
      const known = formers.get(reached);
      if (known === undefined) formers.set(reached, [key]);
      else known.push(key);
    }
  }
  // §7.3: whatever has happened, everybody who lives can still be served.
  const hopeful = new Set(finals);
  for (const key of hopeful) for (const former of formers.get(key) ?? []) hopeful.add(former);
  const stuck = [...formers.keys()].find((key) => !hopeful.has(key));
  if (stuck !== undefined) throw new Error(`somebody waits for ever: ${stuck}`);
  return formers.size;
}

function stepsFrom(
  { record, processes, late, budget }: State,
  rounds: number,
  Rules: typeof LockRules,
): Step[] {
  const steps: Step[] = late.map(
    (_, at) => (next) => decide(Rules, next, next.late.splice(at, 1)[0] as Call),
  );
  const spend = (what: keyof Budget, step: Step): void => {
    if (budget[what] > 0)
      steps.push((next) => {
        next.budget[what] -= 1;
        step(next);
      });
  };
  const [hold] = record.holds;
  if (hold !== undefined) {
    const [at, round] = hold.id.split('.').map(Number) as [number, number];
    const { phase, round: current } = processes[at] as Process;
    // A holder that runs renews in time: only the grants of others expire.
    const isAttended = current === round && !['idle', 'done', 'dead'].includes(phase);
    if (isAttended) spend('pauses', expire);
    else steps.push(expire);
  }
  processes.forEach(({ phase, round, lease, isAlive, call }, at) => {
    const id = `${at}.${round}`;
    const change = (step: (process: Process, next: State) => void): Step => {
      return (next) => step(next.processes[at] as Process, next);
    };
    const send = (kind: Call['kind'], to: Process['phase'], token = 0): Step =>
      change((process) =>
        Object.assign(process, { phase: to, lease: to === 'holds' ? lease : 0, call: { kind, id, token } }),
      );
    const forget = change((process) => delete process.call);
    const isSent = call !== undefined && call.reply === undefined;
    if (isSent) steps.push(change((process, next) => decide(Rules, next, process.call as Call)));
    if (phase === 'dead' && isAlive) steps.push(change((process) => (process.isAlive = false)));
    if (phase === 'dead' || phase === 'done') return;
    // Processes are alike: they begin in the order of their numbers.
    if (phase === 'idle') {
      if (at === 0 || round > 0 || processes[at - 1]?.phase !== 'idle') steps.push(send('attempt', 'asks'));
      return;
    }
    spend(
      'deaths',
      change((process) => Object.assign(process, { phase: 'dead', lease: 0 })),
    );
    if (phase === 'asks' || phase === 'waits') {
      // A look of a waiter that would change nothing is left out.
      const isNew =
        hold === undefined || hold.id === id || !record.waiters.some((waiter) => waiter.id === id);
      if (call === undefined && (phase === 'asks' || isNew)) steps.push(send('attempt', phase));
      const abort = send('abandon', 'ends');
      spend('aborts', abort);
      if (isSent && call.kind === 'attempt') spend('aborts', both(delay, abort));
    }
    if (phase === 'holds' && call === undefined) {
      steps.push(send(lease > 0 ? 'release' : 'abandon', 'ends'));
      if (lease > 0) spend('renewals', send('renew', 'holds', lease));
    }
    if (call === undefined) return;
    const { kind, token } = call;
    switch (kind) {
      case 'attempt':
        spend('losses', forget);
        if (isSent) spend('losses', both(delay, forget));
        break;
      case 'first renewal':
        spend('losses', send('abandon', 'ends'));
        break;
      case 'renew':
        spend('losses', forget);
        break;
      case 'release':
      case 'abandon':
        // It is repeated until it is answered.
        if (!isSent) spend('losses', send(kind, 'ends'));
        break;
      default:
        kind satisfies never;
    }
    if (isSent) return;
    if (kind === 'release' || kind === 'abandon') {
      const goOn = {
        phase: round + 1 < rounds ? 'idle' : 'done',
        round: Math.min(round + 1, rounds - 1),
      } as const;
      steps.push(
        both(
          forget,
          change((process) => Object.assign(process, goOn)),
        ),
      );
    } else if (kind === 'renew') {
      const isLost = call.reply === 'holds not';
      steps.push(
        both(
          forget,
          change((process) => isLost && (process.lease = 0)),
        ),
      );
    } else if (call.reply === 'holds not') {
      steps.push(
        kind === 'attempt'
          ? both(
              forget,
              change((process) => (process.phase = 'waits')),
            )
          : send('abandon', 'ends'),
      );
    } else {
      // §1.4: a lease with too little left is renewed before it is delivered, and one that is over is abandoned.
      if (kind === 'attempt') steps.push(send('first renewal', phase, token));
      steps.push(call.isOver ? send('abandon', 'ends') : both(forget, (next) => enter(next, at, token)));
    }

    function delay(next: State): void {
      next.late.push(call as Call);
    }
  });
  return steps;
}

function both(first: Step, second: Step): Step {
  return (next) => {
    first(next);
    second(next);
  };
}

/** The store carries a request out. */
function decide(Rules: typeof LockRules, { record, processes }: State, call: Call): void {
  const { kind, id, token } = call;
  const isAlive = (client: string): boolean => processes[Number(client)]?.isAlive === true;
  const rules = new Rules(record, { client: id.split('.')[0] as string, isAlive });
  rules.expire(NOW);
  const queue = rules.waiters.map((waiter) => waiter.id);
  rules.serve();
  call.reply = 'holds not';
  if (kind === 'release') rules.release(id);
  else if (kind === 'abandon') rules.abandon(id);
  else if (kind === 'attempt') {
    const attempted = rules.attempt({ acquisitionId: id, mode: EXCLUSIVE }, 1, true);
    if (attempted.status === 'granted') Object.assign(call, { reply: 'holds', token: attempted.hold.token });
  } else if (rules.renew(id, token, 1).status === 'held') call.reply = 'holds';
  rules.commit(NOW);
  const { holds, waiters } = rules;
  const [hold] = holds;
  const order = waiters.map((waiter) => waiter.id);
  if (holds.length > 1) throw new Error('two hold (§11.1)');
  if (hold === undefined && order.length > 0) throw new Error(`${order[0]} waits for a free lock (§7.3)`);
  const ahead = queue.filter((one) => one !== hold?.id && order.includes(one));
  const isServed = hold !== undefined && hold.id !== record.holds[0]?.id;
  if (
    isServed &&
    ahead.some((one) => !queue.includes(hold.id) || queue.indexOf(one) < queue.indexOf(hold.id))
  )
    throw new Error(`${hold.id} overtakes ${ahead[0]} (§7.1)`);
  if (order.filter((one) => queue.includes(one)).join() !== queue.filter((one) => order.includes(one)).join())
    throw new Error(`the order of the waiters changes: ${queue.join()} and ${order.join()} (§7.1)`);
  Object.assign(record, { token: rules.token, holds, waiters });
  for (const { lease } of processes)
    if (lease > 0 && lease !== hold?.token)
      throw new Error('a lease goes on that the store has ended (§3.1)');
  const { phase, call: own } = processes[Number(id.split('.')[0])] as Process;
  // Nobody reads it.
  if (phase === 'dead' && own === call) delete (processes[Number(id.split('.')[0])] as Process).call;
}

/** The time of the grant is over, first for all who count on it, and then for the store. */
function expire({ record, processes }: State): void {
  const token = record.holds[0]?.token;
  for (const process of processes) {
    if (process.lease === token) process.lease = 0;
    if (process.call?.reply === 'holds' && process.call.token === token) process.call.isOver = true;
  }
  Object.assign(record, { holds: [] });
}

/** A lease begins. */
function enter(next: State, at: number, token: number): void {
  const process = next.processes[at] as Process;
  const [hold] = next.record.holds;
  if (next.processes.some(({ lease }) => lease > 0)) throw new Error('two believe that they hold (§11.1)');
  if (hold?.id !== `${at}.${process.round}` || hold.token !== token)
    throw new Error('a lease begins by another grant than the one that the store has (§1.5)');
  if (token <= next.highest) throw new Error('a token does not rise (§6.1)');
  next.highest = token;
  Object.assign(process, { phase: 'holds', lease: token });
}

const SCOPES: readonly (Scope & { readonly states: number })[] = [
  { processes: 2, rounds: 2, budget: { losses: 1 }, states: 4_733 },
  { processes: 3, rounds: 1, budget: { losses: 1 }, states: 8_460 },
  { processes: 2, rounds: 1, budget: { losses: 1, pauses: 1, renewals: 1 }, states: 7_132 },
  { processes: 3, rounds: 1, budget: { deaths: 1 }, states: 14_210 },
  { processes: 2, rounds: 1, budget: { losses: 1, deaths: 1 }, states: 5_785 },
  { processes: 2, rounds: 1, budget: { losses: 1, pauses: 1, renewals: 1, aborts: 1 }, states: 15_558 },
];

it.each(SCOPES)('in every order of events one at a time holds, and all are served: %j', (scope) => {
  expect(walk(LockRules, scope)).toBe(scope.states);
});

const PLANTED: Readonly<Record<string, typeof LockRules>> = {
  'a release ends the hold of whoever holds': class extends LockRules {
    override release(id: string) {
      return super.release(this.holds[0]?.id ?? id);
    }
  },
  'an abandon ends the hold of whoever holds': class extends LockRules {
    override abandon(id: string) {
      super.abandon(id);
      for (const hold of this.holds) super.release(hold.id);
    }
  },
  'an abandon does not serve those who wait': class extends LockRules {
    #isAbandoning = false;
    override abandon(id: string) {
      this.#isAbandoning = true;
      super.abandon(id);
      this.#isAbandoning = false;
    }
    override serve() {
      if (!this.#isAbandoning) super.serve();
    }
  },
  'a hand-off keeps the token of the former hold': class extends LockRules {
    override serve() {
      super.serve();
      for (const hold of this.handedOff.splice(0)) Object.assign(hold, { token: (this.token -= 1) });
    }
  },
  'a renewal confirms a later grant of the same acquisition': class extends LockRules {
    override renew(id: string, token: number, ttl: number) {
      return super.renew(id, this.holdOf(id)?.token ?? token, ttl);
    }
  },
  'a renewal brings back what has ended': class extends LockRules {
    override renew(id: string, token: number, ttl: number) {
      const attempted = this.attempt({ acquisitionId: id, mode: EXCLUSIVE }, ttl, false);
      return super.renew(id, attempted.status === 'granted' ? attempted.hold.token : token, ttl);
    }
  },
  'a repeated attempt is granted anew': class extends LockRules {
    override attempt(request: RulesRequest, ttl: number, enqueue: boolean) {
      if (this.holdOf(request.acquisitionId) !== undefined) this.abandon(request.acquisitionId);
      return super.attempt(request, ttl, enqueue);
    }
  },
  'a repeated attempt goes to the end of the queue': class extends LockRules {
    override attempt(request: RulesRequest, ttl: number, enqueue: boolean) {
      if (this.isQueued(request.acquisitionId)) this.abandon(request.acquisitionId);
      return super.attempt(request, ttl, enqueue);
    }
  },
};

it.each(Object.entries(PLANTED))('the walk finds it when %s', (_, Broken) => {
  expect(() => SCOPES.slice(0, 3).map((scope) => walk(Broken, scope))).toThrow(/§|for ever/);
});
