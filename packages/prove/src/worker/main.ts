/** A worker: one client of the store in a process of its own, which uses locks and writes down what they do. */
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow, serveCalls, setWallClock } from '@locks/core/conformance/process';
import type { Address } from '@locks/core/conformance/proxy';
import { HistoryRecorder } from '@locks/history';
import { type ExaminedLocks, openLocks } from './locks-of-module.ts';
import { redirectConnections } from './redirect-connections.ts';
import { loopsOf, namesOf } from './loops.ts';
import {
  type Fact,
  factsFile,
  historyFile,
  keyOf,
  type LeftBehind,
  type ProxyRequest,
  type CrewCommands,
  type WorkerSetup,
} from './worker-commands.ts';

/** How often a worker looks whether its event loop stood still, and from when on it did. */
const TICK_MS = 50;
const STALL_MS = 40;
const LOOK_MS = 2;
const PAIRS = 7;
/** Whoever fails at once must not fail thousands of times. */
const AFTER_FAILURE_MS = 50;

const setup = JSON.parse(process.argv[2] ?? '') as WorkerSetup;
const ports = new Map<string, ProxyPort>();
/** The port of a proxy that this worker has asked for. */
interface ProxyPort {
  readonly answered: Promise<number>;
  readonly answer: (port: number) => void;
}

let examined: ExaminedLocks | undefined;
let isStopping = false;
/** The locks that are held for long enough to be killed with. */
const held = new Set<string>();
let loops: Promise<unknown> = Promise.resolve();

// Clients report broken connections as uncaught errors. The history judges; the process goes on.
process.on('unhandledRejection', () => undefined);
process.on('uncaughtException', () => undefined);
// Ctrl-C reaches all processes of a terminal: the one that has started this worker ends it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

redirectConnections(portFor);
const commands: CrewCommands = {
  async open() {
    examined = await openLocks(setup);
    const { name, capabilities, isOther } = examined;
    return { name, capabilities, isOther, pairMs: await medianPair(examined) };
  },
  async start(times) {
    const recorder = new HistoryRecorder(setup.name, appendTo(historyFile(setup.folder, setup.name)));
    const writeFact = appendTo(factsFile(setup.folder, setup.name));
    const note = (fact: Fact): void => void writeFact(`${JSON.stringify(fact)}\n`);
    watchForStalls(note);
    const context = {
      locks: opened(),
      recorder,
      note,
      isStopping: () => isStopping,
      held,
      prefix: setup.prefix,
      ...times,
    };
    loops = Promise.all(loopsOf(context).map((round) => repeat(round)));
  },
  async stop() {
    isStopping = true;
    await loops;
  },
  async untilHolding(withinMs) {
    const endsAt = machineNow() + withinMs;
    while (held.size === 0 && machineNow() < endsAt) await sleep(LOOK_MS);
  },
  leftBehind: (withinMs) => whatIsLeft(opened(), withinMs),
  async close() {
    await opened().close();
  },
  async block(ms) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  },
  async setClock(offsetMs) {
    setWallClock(offsetMs);
  },
  async connectThrough(server, port) {
    ports.get(server)?.answer(port);
  },
};
serveCalls(commands);

function opened(): ExaminedLocks {
  if (examined === undefined) throw new Error('The worker has opened no locks.');
  return examined;
}

function portFor(server: Address): Promise<number> {
  const known = ports.get(keyOf(server));
  if (known !== undefined) return known.answered;
  let answer: (port: number) => void = () => undefined;
  const answered = new Promise<number>((resolve) => (answer = resolve));
  ports.set(keyOf(server), { answered, answer });
  process.send?.({ proxyFor: server } satisfies ProxyRequest);
  return answered;
}

/** Written before the call goes on: the lines of a killed process are there. */
function appendTo(file: string): (line: string) => number {
  const descriptor = openSync(file, 'a');
  return (line) => writeSync(descriptor, line);
}

async function medianPair(locks: ExaminedLocks): Promise<number> {
  const times: number[] = [];
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const from = machineNow();
    const limits = { ttlMs: setup.ttlMs, waitMs: 10_000 };
    const lease = await locks.acquire(`${setup.prefix}first ${setup.name}`, { kind: 'exclusive' }, limits);
    await lease?.release();
    times.push(machineNow() - from);
  }
  return times.sort((a, b) => a - b)[PAIRS >> 1] as number;
}

function watchForStalls(note: (fact: Fact) => void): void {
  let before = machineNow();
  setInterval(() => {
    const now = machineNow();
    if (now - before > TICK_MS + STALL_MS) note({ kind: 'stall', from: before, until: now });
    before = now;
  }, TICK_MS);
}

async function repeat(round: () => Promise<void>): Promise<void> {
  while (!isStopping) {
    try {
      await round();
    } catch {
      // The recorder has the outcome.
      await sleep(AFTER_FAILURE_MS);
    }
  }
}

async function whatIsLeft(locks: ExaminedLocks, withinMs: number): Promise<LeftBehind[]> {
  const names = namesOf(locks.capabilities).map((name) => `${setup.prefix}${name}`);
  const busy = await Promise.all(names.map((name) => busyOrFree(locks, name, withinMs)));
  const listed = (await locks.list?.(setup.prefix)) ?? [];
  const left = [
    ...busy.filter((one) => one !== undefined),
    ...listed.map((name) => ({ name, what: 'is still listed as held or waited for' })),
  ];
  for (const { name } of left) await locks.forceRelease?.(name);
  return left;
}

async function busyOrFree(
  locks: ExaminedLocks,
  name: string,
  withinMs: number,
): Promise<LeftBehind | undefined> {
  const endsAt = machineNow() + withinMs;
  for (let leftMs = withinMs; leftMs > 0; leftMs = endsAt - machineNow()) {
    try {
      const limits = { ttlMs: setup.ttlMs, waitMs: Math.max(1, leftMs) };
      const lease = await locks.acquire(name, { kind: 'exclusive' }, limits);
      if (lease === undefined) continue;
      await lease.release();
      return undefined;
    } catch {
      await sleep(AFTER_FAILURE_MS);
    }
  }
  return { name, what: `could not be acquired within ${Math.round(withinMs)} ms after all had stopped` };
}
