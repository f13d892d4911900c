// What core itself costs on an uncontended acquire and release: all of it, less what the bare memory backend takes for
// the same attempt and release, as CPU time. Run by `node packages/memory/test/core-cpu.ts`, after a build; prints JSON.
import { performance } from 'node:perf_hooks';
import { createLocks, type LockManager } from '@locks/core';
import type { AcquireRequest } from '@locks/core/backend';
import { type MemoryBackend, memoryBackend } from '@locks/memory';

const ROUNDS = Number(process.env['ROUNDS'] ?? 15);
const PAIRS = 40_000;

const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

/** What this thread has used: what others run on its core meanwhile does not count. */
function usedMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

async function withCore(locks: LockManager): Promise<number> {
  const lock = locks.lock('a');
  const start = usedMicros();
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const lease = await lock.acquire();
    await lease.release();
  }
  return (usedMicros() - start) / PAIRS;
}

/** Ids are made beforehand: they are core's work, and are counted there. */
async function bare(backend: MemoryBackend, requests: readonly AcquireRequest[]): Promise<number> {
  const start = usedMicros();
  for (const request of requests) {
    const attempt = await backend.attempt(request, true, call);
    if (attempt.status === 'granted') await backend.release(attempt.grant, call);
  }
  return (usedMicros() - start) / PAIRS;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

const backend = memoryBackend();
const locks = createLocks(memoryBackend());
const requests = Array.from({ length: PAIRS }, (_, index) => ({
  resource: 'a',
  acquisitionId: `id-${index}`,
  label: 'host:1',
  mode: { kind: 'exclusive' as const },
  ttlMs: 30_000,
}));
const rounds: { total: number; bare: number }[] = [];
for (let round = -3; round < ROUNDS; round += 1) {
  const measured = { total: await withCore(locks), bare: await bare(backend, requests) };
  // The first rounds warm up.
  if (round >= 0) rounds.push(measured);
}
const figures = {
  node: process.version,
  totalMicros: median(rounds.map((round) => round.total)),
  bareMicros: median(rounds.map((round) => round.bare)),
  coreMicros: median(rounds.map((round) => round.total - round.bare)),
  fastestCoreMicros:
    Math.min(...rounds.map((round) => round.total)) - Math.min(...rounds.map((round) => round.bare)),
};
console.log(JSON.stringify(figures));
