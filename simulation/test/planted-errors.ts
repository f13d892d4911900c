import type { SourceChange } from '../src/process/source-change.ts';
import type { BackendKind } from '../src/workload/plan.ts';

/** An error in a line on which a promise hangs. */
export interface PlantedError {
  readonly what: string;
  readonly backend: BackendKind;
  readonly change: SourceChange;
}

const RULES = 'core/src/rules/lock-rules.ts';
const MODES = 'core/src/backend/modes.ts';
const LEASE = 'core/src/tenure/lease-state.ts';
const MONITOR = 'core/src/tenure/lease-monitor.ts';
const LOOP = 'core/src/acquire/acquire-loop.ts';
const SCRIPTS = 'redis-protocol/src/generated/scripts.ts';
const QUORUM = 'core/src/quorum/quorum-backend.ts';

export const plantedErrors: readonly PlantedError[] = [
  {
    what: 'a lease is believed longer than the store keeps it',
    backend: 'rules',
    change: { file: LEASE, from: '- (validForMs * 0.01 + 2);', to: '+ validForMs * 0.2;' },
  },
  {
    what: 'the end of a lease by time is not reported',
    backend: 'rules',
    change: { file: MONITOR, from: 'if (now >= lease.deadline) lease.loseByTime();', to: 'void lease;' },
  },
  {
    what: 'no lease is renewed',
    backend: 'rules',
    change: { file: MONITOR, from: 'if (due.length > 0) void this.#renew(due, now);', to: '' },
  },
  {
    what: 'an abandon is not sent',
    backend: 'rules',
    change: { file: LOOP, from: 'if (this.#sent) this.#core.abandonWhenAdmitted(this.#request);', to: '' },
  },
  {
    what: 'a set of locks whose time is over makes one more attempt, of any length',
    backend: 'rules',
    change: {
      file: 'core/src/compose/lock-set.ts',
      from: 'Math.max(1, startedAt',
      to: 'Math.max(0, startedAt',
    },
  },
  {
    what: 'a token is used again',
    backend: 'rules',
    change: { file: RULES, from: '++this.token', to: 'this.token' },
  },
  {
    what: 'the store ends a lease before its ttl',
    backend: 'rules',
    change: { file: RULES, from: 'if (until > now) continue;', to: 'if (until > now + 40) continue;' },
  },
  {
    what: 'a release ends the lock of another, too',
    backend: 'rules',
    change: {
      file: RULES,
      from: 'const ended = this.#end(id);',
      to: 'const [ended] = this.forceRelease(undefined);',
    },
  },
  {
    what: 'a hand-off is lost: the holder ends, and the waiter behind it stays where it is',
    backend: 'rules',
    change: {
      file: RULES,
      from: 'for (let { next } = this; next !== undefined;',
      to: 'for (let next = undefined as never; next !== undefined;',
    },
  },
  {
    what: 'an abandoned waiter stays in the queue',
    backend: 'rules',
    change: { file: RULES, from: 'if (this.#queue.remove(id)) this.changed = true;', to: '' },
  },
  {
    what: 'a newcomer overtakes the queue',
    backend: 'rules',
    change: {
      file: RULES,
      from: 'return this.#queue.length === 0 && this.fits(mode);',
      to: 'return this.fits(mode);',
    },
  },
  {
    what: 'a reader enters beside a writer',
    backend: 'rules',
    change: {
      file: MODES,
      from: "return this.#kind === undefined || this.#kind === 'shared';",
      to: 'return true;',
    },
  },
  {
    what: 'one permit too many is given out',
    backend: 'rules',
    change: {
      file: MODES,
      from: 'this.#weight + mode.weight <= mode.limit',
      to: 'this.#weight + mode.weight <= mode.limit + 1',
    },
  },
  {
    what: 'half of the stores is a majority',
    backend: 'quorum',
    change: {
      file: 'core/src/quorum/quorum-options.ts',
      from: 'Math.floor(nodes.length / 2) + 1',
      to: 'Math.floor(nodes.length / 2)',
    },
  },
  {
    what: 'a quorum does not return what it was granted by a minority',
    backend: 'quorum',
    change: { file: QUORUM, from: 'const cleanUp = nodes.map(', to: 'const cleanUp = [].map(' },
  },
  {
    what: 'a script of Redis hands off to a waiter that does not fit',
    backend: 'redis',
    change: {
      file: SCRIPTS,
      from: "if alive and(not fit or mode==\\'!\\' and process~=own)then break end",
      to: '',
    },
  },
  {
    what: 'a script of Redis gives a token a second time',
    backend: 'redis',
    change: {
      file: SCRIPTS,
      from: 'next_token(r.token,r.horizon or 0)',
      to: 'parse_token(redis.call("GET",r.token))',
    },
  },
  {
    what: 'a script of Redis keeps a lease for half of its ttl',
    backend: 'redis',
    change: { file: SCRIPTS, from: "\\'PX\\',ttl)", to: "\\'PX\\',math.floor(ttl/2))" },
  },
];
