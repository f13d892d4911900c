import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../backends.ts';
import { connect } from '../connect.ts';
import type { Settings } from '../settings.ts';
import { Election, type Term } from './election.ts';

const LABELS = ['a', 'b', 'c'] as const;
const TTL_MS = 3_000;
/** For how long each leader works. */
const TERM_MS = 800;

/** What happens to the leaders, one after another. */
const ENDS = ['resign', 'kill', 'kill'] as const;

/** One change of leader. */
interface Change {
  readonly how: (typeof ENDS)[number];
  readonly former: string;
  readonly next: string;
  readonly token: string | undefined;
  /** From the end of the former leadership to the begin of the next one, in milliseconds. */
  readonly failoverMs: number;
}

/** Lets the leader resign, then kills the next two, and shows how long nobody led. */
export async function playLeader(
  store: Store,
  { backend, json }: Settings & { readonly act: 'leader' },
): Promise<boolean> {
  const say = (text: string): void => (json ? undefined : console.log(text));
  say(
    `Three candidates in three processes; the lock is in ${backend} (${store.place}), its ttl ${TTL_MS / 1_000} s.\n`,
  );
  await using election = new Election(store.address, LABELS, TTL_MS);
  const first = await election.leader(0);
  await allTakePart(store);
  say(`${nameOf(first)} leads`);
  const changes: Change[] = [];
  let leader = first;
  for (const [index, how] of ENDS.entries()) {
    await sleep(TERM_MS);
    const endedAt = how === 'resign' ? await election.resign(leader) : election.kill(leader);
    const next = await election.leader(index + 1);
    const failoverMs = next.beganAt - endedAt;
    changes.push({ how, former: leader.label, next: next.label, token: next.token, failoverMs });
    say(`${nameOf(leader)} ${verbOf(how)}; ${nameOf(next)} leads after ${inWords(failoverMs)}`);
    leader = next;
  }
  const ok = isSound(first, changes);
  if (json)
    console.log(JSON.stringify({ backend, ttlMs: TTL_MS, first: first.label, changes, ok }, undefined, 2));
  else if (ok)
    say(
      `\nOne leader at a time, each with a higher fencing token. After a resignation the next one leads at once, after a crash when the ttl is over.`,
    );
  else
    say(
      '\nThis run shows an error: a leader began before the former one had ended, or its token was not higher.',
    );
  return ok;
}

/** Waits until every candidate leads or waits for it. */
async function allTakePart(store: Store): Promise<void> {
  await using connection = await connect(store.address);
  for (;;) {
    const { holders, waiters } = await connection.locks.inspect('scheduler');
    if (holders.length + waiters.length >= LABELS.length) return;
    await sleep(20);
  }
}

/** Whether nobody led before the former leader had ended, and the tokens rose where the backend has them. */
function isSound(first: Term, changes: readonly Change[]): boolean {
  const tokens = [first.token, ...changes.map(({ token }) => token)];
  const risen = tokens.every((token, index) => {
    const former = tokens[index - 1];
    return token === undefined || former === undefined || BigInt(token) > BigInt(former);
  });
  return risen && changes.every(({ former, next, failoverMs }) => former !== next && failoverMs >= 0);
}

function nameOf({ label, pid, token }: Term): string {
  return `${label} (process ${pid}${token === undefined ? '' : `, token ${token}`})`;
}

function verbOf(how: Change['how']): string {
  return how === 'resign' ? 'resigns' : 'is killed with kill -9';
}

function inWords(ms: number): string {
  return ms < 1_000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
