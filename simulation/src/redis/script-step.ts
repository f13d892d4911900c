import type { LockMode } from '@locks/core/backend';
import type { LockRules, WaiterRecord } from '@locks/core/rules';
import { type LockView, modeOf } from './lock-view.ts';

/** A call of a script, by the name of its file without `.lua`. */
export interface ScriptCall {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** Decides a step by the rules. Returns whether the script serves the queue in it. */
export type Step = (rules: LockRules) => boolean;

export const NOBODY = '';

/** What the rules do for one lock of a call; `undefined` if they say nothing about it. */
export function stepOf(call: ScriptCall, index: number, view: LockView, isTaken: boolean): Step | undefined {
  const { script, args } = call;
  const [id = ''] = args;
  switch (script) {
    case 'acquire': {
      const [, ttl = '', label = '', notify = '', , , , limit = '0', weight = '', takes, adopts] = args;
      const request = {
        id,
        label,
        mode: modeOfArguments(limit, weight),
        isStolen: takes === 'steal',
        adopts,
      };
      return (rules) => attempt(rules, view, request, { ttl: Number(ttl), enqueue: notify !== '' });
    }
    case 'many': {
      const [of = '', ttl = '', label = '', limit = '0', weight = ''] = args.slice(5 * index);
      const request = { id: of, label, mode: modeOfArguments(limit, weight), isStolen: false };
      return (rules) =>
        attempt(rules, view, request, { ttl: Number(ttl), enqueue: false, isOnlyServed: !isTaken });
    }
    case 'release':
      return (rules) => rules.holdOf(id) !== undefined && rules.release(id) !== undefined;
    case 'abandon':
      return (rules) => {
        // Of a waiter that its process does not know any more only the hold ends.
        const isQueued = rules.isQueued(id) && args.slice(2).some((member) => member.startsWith(`${id}|`));
        if (!isQueued && rules.holdOf(id) === undefined && !view.isShared) return false;
        if (isQueued) rules.abandon(id);
        else rules.release(id);
        return true;
      };
    case 'check':
      return (rules) => {
        const isWaiting = checkedBy(call, index).waiters.some(({ waiter }) => rules.isQueued(waiter.id));
        if (!isWaiting || rules.holds.some(({ mode }) => mode.kind === 'exclusive')) return false;
        rules.serve();
        return true;
      };
    case 'downgrade':
      return (rules) => {
        if (rules.holdOf(id)?.mode.kind !== 'exclusive') return false;
        rules.downgrade(id, 0);
        return true;
      };
    case 'resize':
      if (hasBothFamilies(view)) return undefined;
      return (rules) => {
        rules.resize(Number(id));
        return true;
      };
    case 'force-release':
      return (rules) => {
        const only = args[1];
        const isHeld = only === undefined ? rules.holds.length > 0 : rules.holdOf(only) !== undefined;
        if (isHeld) rules.forceRelease(only);
        return isHeld;
      };
    case 'renew':
      return (rules) => {
        const [beginning = '', ttl = ''] = args.slice(2 * index);
        const [of = '', , token = ''] = beginning.split('|');
        if (rules.holdOf(of)?.mode.kind === 'exclusive') rules.renew(of, Number(token), Number(ttl));
        return false;
      };
    case 'renew-shares':
      return (rules) => {
        const [of = '', token = '', ttl = ''] = args.slice(3 * index);
        rules.renew(of, Number(token), Number(ttl));
        return false;
      };
    default:
      return undefined;
  }
}

interface AttemptRequest {
  readonly id: string;
  readonly label: string;
  readonly mode: LockMode;
  readonly isStolen: boolean;
  /** The acquisition whose hold it takes over. */
  readonly adopts?: string | undefined;
}

interface AttemptTimes {
  readonly ttl: number;
  readonly enqueue: boolean;
  readonly isOnlyServed?: boolean;
}

function attempt(rules: LockRules, view: LockView, request: AttemptRequest, times: AttemptTimes): boolean {
  const { id, label, mode, isStolen, adopts } = request;
  if (rules.holdOf(id) !== undefined) return false;
  const asked = { acquisitionId: id, label, mode };
  if (isStolen) {
    rules.attempt({ ...asked, steal: true }, times.ttl, false);
    return mode.kind !== 'exclusive';
  }
  if (adopts !== undefined) {
    rules.attempt({ ...asked, adopts }, times.ttl, false);
    return false;
  }
  const serves = rules.holds.length === 0 || view.mayHaveEnded;
  if (serves) rules.serve();
  if (times.isOnlyServed) return serves;
  rules.attempt(asked, times.ttl, times.enqueue);
  return serves;
}

function modeOfArguments(limit: string, weight: string): LockMode {
  return weight === '' ? { kind: 'exclusive' } : modeOf(weight === '0' ? 0 : Number(limit), Number(weight));
}

/** The `notify` of the process that calls: to it, its own waiters are alive. */
export function callerOf({ script, args }: ScriptCall): string {
  switch (script) {
    case 'acquire':
      return args[3] ?? NOBODY;
    case 'force-release':
      return args[0] ?? NOBODY;
    case 'release':
    case 'abandon':
    case 'check':
    case 'downgrade':
    case 'resize':
      return args[1] ?? NOBODY;
    default:
      return NOBODY;
  }
}

/** Permits beside other modes: waiters that were passed over came back by a check after others had taken the name. */
function hasBothFamilies({ record: { holds, waiters } }: LockView): boolean {
  const kinds = new Set([...holds, ...waiters].map(({ mode }) => mode.kind));
  return kinds.has('permit') && kinds.size > 1;
}

/** The waiters of one lock that a check names. */
export function checkedBy({ args }: ScriptCall, index: number) {
  const notify = args[1] ?? '';
  let at = 3;
  for (let skipped = 0; skipped < index; skipped++) at += 1 + 3 * Number(args[at]);
  const count = Number(args[at]);
  const waiters = Array.from({ length: count }, (_, each) => {
    const [member = '', position = '', limit = ''] = args.slice(at + 1 + 3 * each);
    const [id = '', time = '', , ...label] = member.split('|');
    const [px = '', weight = ''] = time.split(':');
    const mode = modeOfArguments(limit || '0', weight);
    const waiter: WaiterRecord = {
      id,
      mode,
      label: label.join('|'),
      client: notify,
      ttl: Number(px),
      since: undefined,
    };
    return { waiter, position: Number(position) };
  });
  return { notify, waiters };
}
