import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError, LockError } from '@locks/core';
import { machineNow } from '@locks/core/conformance/process';
import { faultOf, type FaultName, strike, type Strike } from './faults.ts';
import { Disturbances } from './judge/disturbances.ts';
import { judgeRun } from './judge/judge-run.ts';
import { readRun } from './judge/run-record.ts';
import { MachineWatch } from './machine-watch.ts';
import { RESERVED } from './names.ts';
import type { Proof } from './proof.ts';
import { type ProveOptions, readProveOptions } from './prove-options.ts';
import { FaultDraws } from './fault-draws.ts';
import { runSuite } from './suite/run-suite.ts';
import { timelineOf } from './timeline.ts';
import type { OpenedLocks } from './worker/worker-commands.ts';
import { WorkerCrew } from './worker-crew.ts';

const LEAST_TTL_MS = 1_500;
/** How long the hold of a dead client lasts where it ends with its session: the default of the adapters. */
const SESSION_MS = 10_000;
const OPEN_MS = 20_000;
const LEAST_SLACK_MS = 1_000;
const MOST_SLACK_MS = 10_000;
/** How many pairs of acquire and release a store, which is as slow as it is, may be late. */
const SLACK_PAIRS = 10;
/** What patient waiters wait for beside three times of a dead hold, in milliseconds. */
const PATIENCE_MS = 5_000;
/** A client that lost its connection may wait so long before it connects again. */
const RECONNECT_MS = 3_000;

// setup: import { prove } from '@locks/prove';
/**
 * Uses the locks of a store in several processes while these are killed, stand still and lose their connections, and judges every promise
 * of the locks by what the processes saw. The server is not touched, and the names of the locks are of a run of its own.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option and for a module that opens no locks; `LOCK_BACKEND` where the store does not
 *   answer, or no lock was granted: then nothing was tested
 * @example
 * ```ts
 * const store = { module: new URL('./my-backend.mjs', import.meta.url).href };
 * const { kept, promises } = await prove({ store, runMs: 60_000 });
 * for (const { promise, tested, verdict } of promises) console.log(promise, tested, verdict);
 * console.log(kept);
 * ```
 */
export async function prove(options: ProveOptions): Promise<Proof> {
  const {
    store,
    runMs,
    faults,
    workers: size,
    suite: isSuite,
    signal,
    onStrike,
    ...given
  } = readProveOptions(options);
  const seed = given.seed ?? randomBytes(4).readUInt32LE();
  const startedAt = new Date().toISOString();
  await using notes = await makeFolder();
  const { folder } = notes;
  const prefix = `${RESERVED}${randomBytes(6).toString('hex')}/`;
  const first = { store, folder, prefix, size, openMs: OPEN_MS, ttlMs: given.ttlMs ?? LEAST_TTL_MS };
  await using crew = new WorkerCrew(first);
  const opened = await openFirst(crew);
  const suite = isSuite && !opened.isOther ? await runSuite(store, seed) : undefined;
  const { capabilities, pairMs } = opened;
  const isSession = capabilities.tenure === 'session';
  const holdMs = isSession ? SESSION_MS : inSteps(given.ttlMs ?? LEAST_TTL_MS, capabilities.ttl);

  using watch = new MachineWatch();
  const freeMs = holdMs + (capabilities.ttl.marginMs ?? 0);
  const patienceMs = 3 * freeMs + PATIENCE_MS;
  await crew.start({ ttlMs: holdMs, patienceMs });
  const from = machineNow();
  const run = {
    crew,
    faults,
    holdMs,
    freeMs,
    random: new FaultDraws(seed),
    until: from + runMs,
    signal,
    onStrike,
  };
  const strikes = await strikeUntil(run);
  const ranMs = machineNow() - from;
  const slackMs = Math.min(MOST_SLACK_MS, Math.max(LEAST_SLACK_MS, SLACK_PAIRS * pairMs));
  await crew.stop(patienceMs + 3 * holdMs + 2 * slackMs);
  const leftBehind = await crew.leftBehind(3 * freeMs + slackMs);

  const record = readRun(folder, capabilities.fencing !== 'none');
  if (record.holds.length === 0)
    throw new LockError(
      'LOCK_BACKEND',
      'prove(): no lock was granted in the whole run, so nothing was tested.',
    );
  const disturbances = new Disturbances(record, strikes, watch.stalls, holdMs + RECONNECT_MS);
  const { late } = crew;
  const { isOther } = opened;
  const promises = judgeRun({
    ...{ record, disturbances, capabilities, isOther, prefix, holdMs, slackMs, late, leftBehind },
  });
  const isKept = promises.every(({ verdict }) => verdict !== 'broken') && !(suite && suite.failed.length > 0);
  return {
    ...{
      schema: 1,
      kept: isKept,
      backend: opened.name,
      startedAt,
      ranMs,
      endedEarly: signal?.aborted === true,
    },
    ...{
      seed,
      workers: size,
      ttlMs: holdMs,
      pairMs,
      calls: record.verdict.operations,
      grants: record.holds.length,
    },
    promises,
    faults: faults.map((fault) => ({
      fault,
      about: faultOf(fault).about,
      times: strikes.filter((one) => one.fault === fault).length,
    })),
    servers: crew.servers,
    untested: untested(crew, faults, strikes, opened),
    ...(suite !== undefined && { suite }),
    timeline: timelineOf(record, strikes, crew.lanes, prefix, from),
  };
}

interface NotesFolder extends AsyncDisposable {
  readonly folder: string;
}

async function makeFolder(): Promise<NotesFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'locks-prove-'));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

/** @throws LockError `LOCK_BACKEND` where the store does not answer; `LOCK_INVALID_ARGUMENT` for a module that opens no locks */
async function openFirst(crew: WorkerCrew): Promise<OpenedLocks> {
  try {
    return await crew.openFirst();
  } catch (error) {
    if (isLockError(error)) throw error;
    const { code, message } = error as { code?: unknown; message: string };
    if (code === 'LOCK_INVALID_ARGUMENT' || code === 'LOCK_UNSUPPORTED')
      throw new LockError(code, message, { cause: error });
    const says = message.startsWith('The process ended')
      ? `no lock was granted within ${OPEN_MS} ms`
      : message;
    throw new LockError('LOCK_BACKEND', `prove(): the locks cannot be opened: ${says}`, { cause: error });
  }
}

function inSteps(ttlMs: number, { minMs, stepMs }: { minMs: number; stepMs: number }): number {
  return Math.ceil(Math.max(ttlMs, minMs) / stepMs) * stepMs;
}

interface Strikes {
  readonly crew: WorkerCrew;
  readonly faults: readonly FaultName[];
  readonly holdMs: number;
  readonly freeMs: number;
  readonly random: FaultDraws;
  readonly until: number;
  readonly signal: AbortSignal | undefined;
  readonly onStrike: ((strike: Strike) => void) | undefined;
}

/** Makes one fault after the other: each of the faults once, in an order that is drawn, and then again. */
async function strikeUntil({
  crew,
  faults,
  holdMs,
  freeMs,
  random,
  until,
  signal,
  onStrike,
}: Strikes): Promise<Strike[]> {
  const strikes: Strike[] = [];
  let next: FaultName[] = [];
  while (await pause(random.between(0.1, 0.5) * holdMs, until, signal)) {
    const possible = faults.filter((fault) => isPossible(fault, crew));
    if (possible.length === 0) continue;
    if (next.length === 0) next = random.shuffled(possible);
    const made = await strike(next.shift() as FaultName, {
      crew,
      worker: random.one(crew.workers),
      random,
      holdMs,
      freeMs,
    });
    strikes.push(made);
    onStrike?.(made);
  }
  return strikes;
}

/** Waits, and tells whether there is time left. */
async function pause(ms: number, until: number, signal: AbortSignal | undefined): Promise<boolean> {
  const left = Math.max(0, until - machineNow());
  await sleep(Math.min(ms, left), undefined, { ...(signal && { signal }) }).catch(() => undefined);
  return signal?.aborted !== true && ms < left;
}

function isPossible(fault: FaultName, { servers }: WorkerCrew): boolean {
  const { on } = faultOf(fault);
  if (on === 'network') return servers.length > 0;
  return on !== 'signals' || process.platform !== 'win32';
}

function untested(
  crew: WorkerCrew,
  faults: readonly FaultName[],
  strikes: readonly Strike[],
  opened: OpenedLocks,
): string[] {
  const impossible = faults.filter((fault) => !isPossible(fault, crew));
  const network = impossible.filter((fault) => faultOf(fault).on === 'network');
  const signals = impossible.filter((fault) => faultOf(fault).on === 'signals');
  const missed = faults.filter(
    (fault) => !impossible.includes(fault) && strikes.every((one) => one.fault !== fault),
  );
  const { modes } = opened.capabilities;
  return [
    ...(network.length > 0
      ? [
          `Faults of the network (${network.join(', ')}): the client opened no TCP connection through Node's net.`,
        ]
      : []),
    ...(signals.length > 0 ? [`${signals.join(', ')}: Windows has no SIGSTOP.`] : []),
    ...(missed.length > 0 ? [`${missed.join(', ')}: the time was over before.`] : []),
    ...(modes.includes('shared') ? [] : ['Readers and writers: the locks have none.']),
    ...(modes.includes('permit') ? [] : ['Permits: the locks have none.']),
    'Crashes, restarts and failovers of the server, and its clock: this command does not touch the server.',
  ];
}
