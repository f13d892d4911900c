/** The main module of a process that may lead. */
import { createLocks, isLockError } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { machineNow, serveCalls } from '@locks/core/conformance/process';
import { waitUntil } from '@locks/test-servers';
import { election, type Leadership } from '@locks/leader';
import type { CandidateCommands, CandidateSetup, LedTerm } from './commands.ts';

const { harness, label, ttlMs } = JSON.parse(process.argv[2] as string) as CandidateSetup;
const { default: store } = (await import(harness)) as { default: Harness };
const locks = createLocks(await store.createBackend(), { ttlMs });
const stop = new AbortController();
const terms: { -readonly [K in keyof LedTerm]: LedTerm[K] }[] = [];
let current: Leadership | undefined;
let campaign: Promise<void> | undefined;

async function work(leadership: Leadership): Promise<void> {
  const { signal, epoch, fencingToken } = leadership;
  const term = { epoch, token: fencingToken, beganAt: machineNow(), endedAt: undefined, reason: undefined };
  terms.push(term);
  current = leadership;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        Object.assign(term, { endedAt: machineNow(), reason: reasonOf(signal.reason) });
        resolve();
      },
      { once: true },
    );
  });
  current = undefined;
}

function reasonOf(reason: unknown): string {
  if (isLockError(reason)) return reason.reason ?? reason.code;
  return reason instanceof Error ? reason.name : String(reason);
}

const commands: CandidateCommands = {
  async campaign(name) {
    campaign = election(locks, name).lead(work, {
      signal: stop.signal,
      label,
      backoff: { firstMs: 50, longestMs: 1_000 },
      onError: (error) => console.error(label, error),
    });
    campaign.catch(() => {});
    await waitUntil(
      async () => {
        const { holders, waiters } = await locks.inspect(name);
        return [...holders, ...waiters].some((one) => one.label === label);
      },
      { what: `${label} to take part` },
    );
  },
  async terms() {
    // Reading the signal reads the clock.
    void current?.signal;
    return terms;
  },
  async resign() {
    current?.resign();
  },
  async stop() {
    stop.abort();
    await campaign;
  },
  async block(ms) {
    const until = performance.now() + ms;
    const leadership = current as Leadership;
    while (performance.now() < until);
    return { aborted: leadership.signal.aborted, validForMs: leadership.validForMs };
  },
  async leader(name) {
    return election(locks, name).leader();
  },
  async watch(name, count) {
    const labels: (string | undefined)[] = [];
    for await (const info of election(locks, name).watch({ pollMs: 50 })) {
      labels.push(info?.label);
      if (labels.length === count) break;
    }
    return labels;
  },
};

serveCalls(commands);
