import { machineNow } from '@locks/core/conformance/process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisServer, type SentinelDeployment, startSentinel } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import type { Worker } from '../src/fault-lab/fault-lab.ts';
import { figure } from '../src/fault-lab/observe.ts';
import type { LoadResult, WorkerLease } from '../src/fault-lab/worker/commands.ts';
import Lab from './lab.ts';
import { assertNoOverlap, assertTokensRise, recoveryMs, together } from './load-history.ts';

const TTL_MS = 4_000;
/** Of leases that outlive the failover: what replicas have is not lost. */
const LONG_TTL_MS = 15_000;
const DOWN_AFTER_MS = 1_000;
/** What the machine may add to the promised recovery, 2 × down-after + ttl. */
const SLACK_MS = 1_000;
/** How often the master is told the time, so that a replica shows how far it had followed. */
const MARK_EVERY_MS = 10;
const MARK = 'replicated until';
const RESOURCES = ['r0', 'r1', 'r2', 'r3'];

/** Sentinels announce a new master within this, once they know. */
const ANNOUNCED_MS = 2_000;
/** For how long a master that was deposed may go on: Sentinel makes it a replica after four of its hello messages, 2 s apart. */
const DEPOSED_MS = 10_000;

/** On the machine's clock. */
interface Span {
  readonly from: number;
  readonly to: number;
}

interface Held {
  readonly worker: Worker;
  readonly name: string;
  readonly ttlMs: number;
  readonly lease: WorkerLease;
}

interface Failover extends LoadResult {
  readonly held: readonly Held[];
  readonly failedAt: number;
  /** What the old master did before had reached the new one. */
  readonly replicatedUntil: number;
  /** When the sentinels announced each new master. */
  readonly switches: readonly number[];
  readonly master: RedisServer;
}

/** Two processes of each client contend for a few locks and hold two each throughout, while `fail` happens. */
async function failover(
  lab: Lab,
  how: string,
  fail: (master: RedisServer) => Promise<void>,
): Promise<Failover> {
  const deployment = lab.use(await startSentinel({ downAfterMs: DOWN_AFTER_MS }));
  const sentinels = deployment.sentinels.map(({ host, port }) => ({ host, port }));
  const switches = await switchesOf(lab, deployment);
  const address: RedisAddress = { kind: 'sentinel', name: deployment.name, sentinels };
  const workers = await Promise.all(
    [...libraries, ...libraries].map((library) => lab.worker(address, { library, ttlMs: TTL_MS })),
  );
  const hold = async (worker: Worker, name: string, ttlMs: number): Promise<Held> => {
    return { worker, name, ttlMs, lease: await worker.call.acquire(name, { ttlMs }) };
  };
  const held = await Promise.all(
    workers.flatMap((worker, index) => [
      hold(worker, `held ${index}`, TTL_MS),
      hold(worker, `held for long ${index}`, LONG_TTL_MS),
    ]),
  );
  await Promise.all(
    workers.map((worker) =>
      worker.call.startLoad({ resources: RESOURCES, loops: 4, holdMs: 8, waitMs: 25_000 }),
    ),
  );
  const old = await deployment.master();
  await markTime(lab, old);
  await sleep(1_000);
  const failedAt = machineNow();
  await fail(old);
  await deployment.waitForNewMaster(old.port);
  figure(`master ${how}: new master after`, machineNow() - failedAt);
  await sleep(failedAt + 2 * DOWN_AFTER_MS + TTL_MS + SLACK_MS - machineNow());
  const result = together(await Promise.all(workers.map((worker) => worker.call.stopLoad())));
  // Asked at the end: sentinels that are short of time may have promoted one replica after the other.
  const master = await deployment.master();
  const replicatedUntil = Number(await master.command('GET', MARK));
  return { ...result, held, failedAt, replicatedUntil, switches: [...switches.values()], master };
}

/** Writes the time into the master, again and again. What it had granted before a mark that a replica knows, that replica knows as well. */
async function markTime(lab: Lab, { host, port }: RedisServer): Promise<void> {
  const client = new Redis(port, host);
  client.on('error', () => undefined);
  lab.defer(() => client.disconnect());
  await client.set(MARK, machineNow());
  const timer = setInterval(() => void client.set(MARK, machineNow()).catch(() => undefined), MARK_EVERY_MS);
  lab.defer(() => clearInterval(timer));
}

/** Each new master's port, and when a sentinel first announced it; grows until the lab ends. */
async function switchesOf(lab: Lab, { sentinels }: SentinelDeployment): Promise<Map<string, number>> {
  const switches = new Map<string, number>();
  for (const { port, host } of sentinels) {
    const sentinel = new Redis(port, host);
    sentinel.on('error', () => undefined);
    lab.defer(() => sentinel.disconnect());
    await sentinel.subscribe('+switch-master');
    sentinel.on('message', (_channel: string, text: string) => {
      const to = text.split(' ').at(-1) ?? '';
      if (!switches.has(to)) switches.set(to, machineNow());
    });
  }
  return switches;
}

describe('a failover of Sentinel under load', { timeout: 60_000 }, () => {
  it.each([
    ['killed', (master: RedisServer) => master.kill()],
    ['frozen', (master: RedisServer) => master.pause()],
  ])('with the master %s: leases survive or are reported lost, waiters get on in time', async (how, fail) => {
    await using lab = new Lab();
    const { sections, failures, unhandled, held, failedAt, replicatedUntil, switches, master } =
      await failover(lab, how, fail);
    figure(`master ${how}: the new master lacks what the old one did in its last`, failedAt - replicatedUntil);
    for (const at of switches) figure(`master ${how}: a new master announced after`, at - failedAt);
    expect(unhandled).toEqual([]);
    expect(sections.filter(({ enteredAt }) => enteredAt < failedAt).length).toBeGreaterThan(50);
    const [announcedAt = Number.NaN, ...again] = switches;
    // A master that is deposed by the next one may grant until it hears of that.
    const deposed = again.map((at) => ({ from: at - ANNOUNCED_MS, to: at + DEPOSED_MS }));
    const enteredDuring = (spans: readonly Span[], { enteredAt }: { readonly enteredAt: number }): boolean =>
      spans.some(({ from, to }) => from < enteredAt && enteredAt < to);
    assertTokensRise(sections.filter((section) => !enteredDuring(deposed, section)));
    // Replication is asynchronous: a grant may be lost with the old master. Nothing else excuses an overlap. (Sentinels
    // that are short of time may promote one replica after the other: then grants of the first may be lost as well.)
    // Who enters before the new master is announced was let in by the old one: its answer may have been read late.
    const losses = [{ from: replicatedUntil, to: announcedAt }, ...deposed];
    const overlaps = assertNoOverlap(sections, ({ earlier }) => enteredDuring(losses, earlier));
    process.stdout.write(
      `    ${how}: ${sections.length} sections, ${overlaps.length} overlaps, ${failures.length} failures, ${switches.length} new masters\n`,
    );
    // While nobody answers a release may fail and a lease may be lost, but no wait of 25 s runs out.
    for (const { what } of failures) expect(what).toMatch(/^LOCK_(LOST|BACKEND) /);
    for (const library of libraries) {
      const recovered = recoveryMs(sections, failedAt, library);
      figure(`master ${how}: ${library} has taken every lock again after`, recovered);
      const announced = switches.map((at) => Math.round(at - failedAt)).join(', ');
      expect(recovered, `${library}; new masters were announced after ${announced} ms`).toBeLessThan(
        2 * DOWN_AFTER_MS + TTL_MS + SLACK_MS,
      );
    }
    await assertSurvivedOrReported(held, master);
  });
});

/** A holder whose lease was not reported lost has the lock, on the new master too. */
async function assertSurvivedOrReported(held: readonly Held[], master: RedisServer): Promise<void> {
  let survived = 0;
  for (const { worker, name, ttlMs, lease } of held) {
    const { aborted, reason, validForMs } = await worker.call.state(lease.id);
    if (aborted) {
      expect(ttlMs, `${name} was lost: ${reason}`).toBe(TTL_MS);
      expect(reason).toMatch(/^(unconfirmed|expired|force-released|taken-over)$/);
      continue;
    }
    survived += 1;
    expect(validForMs).toBeGreaterThan(0);
    expect(await master.command('GET', `lock::${name}`)).toContain(lease.acquisitionId);
    await worker.call.release(lease.id);
    expect(await master.command('EXISTS', `lock::${name}`)).toBe(0);
  }
  process.stdout.write(
    `    ${survived} of ${held.length} held leases survived, the others were reported lost\n`,
  );
}
