import type { TraceRule } from '@locks/history';
import type { PlantedError } from './planted-errors.ts';

/** The planted errors that a trace shows without the simulation's own checks: by which rule, and in which schedule. */
export const plantedInTraces: Readonly<Record<string, { readonly rule: TraceRule; readonly seed: number }>> =
  {
    'redis: a token is given again': { rule: 'token-own', seed: 1 },
    'redis: a waiter gets what does not fit': { rule: 'permits', seed: 1 },
    'redis: a hand-off keeps the former token': { rule: 'token-own', seed: 1 },
    'redis: the fast path gives one permit too many': { rule: 'permits', seed: 1 },
    'redis: a set takes what others hold': { rule: 'loss-explained', seed: 5 },
    'redis: a renewal confirms a later grant of the same acquisition': { rule: 'token-order', seed: 295 },
    'redis: the ends of renewed shares are not noted': { rule: 'loss-explained', seed: 6 },
    'redis: a grant counts from its reply': { rule: 'loss-explained', seed: 65 },
    'redis: a lease that was downgraded is renewed as a lock': { rule: 'loss-explained', seed: 4 },
    'redis: a message about an earlier hold is taken for a grant': { rule: 'loss-explained', seed: 948 },
    'redis: a hand-off counts from its message': { rule: 'token-order', seed: 295 },
    'redis: a late message ends the hold that it tells of': { rule: 'loss-explained', seed: 8 },
    'rules: a lease is believed longer than the store keeps it': { rule: 'belief-in-time', seed: 1 },
    'rules: a renewal counts from its reply': { rule: 'belief-in-time', seed: 42 },
    'rules: the end of a lease by time is not reported': { rule: 'loss-told-first', seed: 4 },
    'rules: no lease is renewed': { rule: 'renewal-sent', seed: 58 },
    'rules: a token is used again': { rule: 'token-own', seed: 1 },
    'rules: the store ends a lease before its ttl': { rule: 'permits', seed: 1 },
    'rules: a release ends the lock of another, too': { rule: 'loss-explained', seed: 1 },
    'rules: a reader enters beside a writer': { rule: 'exclusion', seed: 7 },
    'rules: one permit too many is given out': { rule: 'permits', seed: 1 },
    'rules: an abandon is not sent': { rule: 'abandoned', seed: 8 },
    'rules: what is held stays in the store when the locks close': { rule: 'given-back', seed: 7 },
    'rules: children of one scope enter beside each other': { rule: 'entries', seed: 27 },
    'quorum: half of the stores is a majority': { rule: 'exclusion', seed: 2 },
    'quorum: a renewal takes a store from who holds there': { rule: 'loss-explained', seed: 629 },
    'rules: a turn has the token of a later lease': { rule: 'token-own', seed: 22 },
    'mysql: an answer is given from memory': { rule: 'loss-explained', seed: 4 },
    'mysql: a renewal that wrote nothing is confirmed': { rule: 'loss-explained', seed: 9 },
    'record: others do not notice a renewal': { rule: 'loss-explained', seed: 1 },
    'record: others end a hold after half of its ttl': { rule: 'permits', seed: 1 },
    'record: a write of others renews a hold': { rule: 'loss-explained', seed: 1 },
    'record: the clocks of the servers are taken for one': { rule: 'loss-explained', seed: 8 },
    'record: a clock in steps is taken for an exact one': { rule: 'loss-explained', seed: 12 },
    'record: a lock is granted to waiters that are not told': { rule: 'loss-explained', seed: 58 },
    'etcd: those who are granted together get one token': { rule: 'token-own', seed: 83 },
    'etcd: a leader that was replaced is believed': { rule: 'loss-explained', seed: 642 },
    'etcd: a lease that is used again counts from its use': { rule: 'loss-explained', seed: 262 },
    'etcd: a renewal that was sent twice ends the lease to which it has moved its hold': {
      rule: 'loss-explained',
      seed: 192,
    },
    'etcd: a release that is answered twice gives its lease to two locks': {
      rule: 'loss-explained',
      seed: 4509,
    },
    'rules: a process goes on with what it has transferred': { rule: 'belief-ended', seed: 2 },
    'record: a lease is adopted from whoever holds the lock': { rule: 'loss-explained', seed: 2 },
    'redis: a ticket is adopted twice': { rule: 'loss-explained', seed: 9 },
    'zookeeper: whoever waits behind one who gave up enters at once': { rule: 'exclusion', seed: 2 },
    'zookeeper: the queue has another order than that in which its waiters came': {
      rule: 'exclusion',
      seed: 2,
    },
    'zookeeper: readers enter beside a writer': { rule: 'exclusion', seed: 2 },
    'zookeeper: a node gets the token of another that came with it': { rule: 'token-own', seed: 4 },
    'sqlite: a renewal lasts for half of its ttl': { rule: 'loss-explained', seed: 8 },
    'sqlite: a lease is kept for half of its ttl': { rule: 'permits', seed: 1 },
    'sqlite: a token is given again': { rule: 'token-own', seed: 1 },
    'sqlite: tokens fall with the wall clock': { rule: 'token-own', seed: 1 },
    'sqlite: a permit of several counts as one': { rule: 'permits', seed: 1 },
    'sqlite: permits that are held are not counted': { rule: 'permits', seed: 1 },
    'postgres: a writer is let in beside readers': { rule: 'exclusion', seed: 7 },
    'postgres: a waiter gets permits that are in use': { rule: 'permits', seed: 1 },
    'postgres: a hand-off lasts for half of its ttl': { rule: 'exclusion', seed: 12 },
    'postgres: a plain insert takes the lock from its holder': { rule: 'exclusion', seed: 1 },
    'postgres: an open transaction of the application takes a lock back': {
      rule: 'loss-explained',
      seed: 51,
    },
  };

/** The table of docs/traces.md: how many of the planted errors a trace shows, by backend, and by which rule. */
export function tableOfPlanted(errors: readonly PlantedError[]): string {
  const backends = [...new Set(errors.map(({ backend }) => backend))];
  const lines = backends.map((backend) => {
    const planted = errors.filter((error) => error.backend === backend);
    const found = planted.flatMap(({ what }) => plantedInTraces[`${backend}: ${what}`] ?? []);
    const rules = [...new Set(found.map(({ rule }) => rule))].map(
      (rule) => `\`${rule}\` ${found.filter((one) => one.rule === rule).length}`,
    );
    return `| ${backend} | ${found.length} of ${planted.length} | ${rules.join(', ')} |`;
  });
  return [
    '| the simulation on | planted errors that a trace shows | by the rule |',
    '|---|---|---|',
    ...lines,
  ].join('\n');
}
