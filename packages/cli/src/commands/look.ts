import { setTimeout as sleep } from 'node:timers/promises';
import type { LockManager, ResourceState } from '@locks/core';
import { detailsOf, jsonOf, tableOf } from './states.ts';

export type Write = (text: string) => void;

export async function ls(locks: LockManager, prefix: string, json: boolean, write: Write): Promise<void> {
  if (json) {
    // States are written one by one, since there may be too many to collect.
    for await (const state of locks.list(prefix)) write(jsonOf(state));
    return;
  }
  const states = await all(locks, prefix);
  write(states.length === 0 ? 'nothing is held or waited for\n' : `${tableOf(states)}\n`);
}

export async function show(locks: LockManager, name: string, json: boolean, write: Write): Promise<void> {
  const state = await locks.inspect(name);
  write(json ? jsonOf(state) : `${detailsOf(state)}\n`);
}

export interface WatchOptions {
  readonly prefix: string;
  readonly json: boolean;
  readonly everyMs: number;
  /** `true`: the output is a terminal, where each table replaces the one before. */
  readonly isTerminal: boolean;
  readonly signal: AbortSignal;
}

const CLEAR = '\u001B[H\u001B[J';

/** Writes the states of the locks repeatedly until `signal` aborts; into a file only those that have changed. */
export async function watch(locks: LockManager, options: WatchOptions, write: Write): Promise<void> {
  const { prefix, json, everyMs, isTerminal, signal } = options;
  const seen = new Map<string, string>();
  while (!signal.aborted) {
    const states = await all(locks, prefix);
    if (isTerminal && !json) write(`${CLEAR}${tableOf(states)}\n`);
    else for (const state of changed(states, seen)) write(json ? jsonOf(state) : `${detailsOf(state)}\n`);
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

/** The states whose holders or waiters are others than in `seen`, which is brought up to date. */
function changed(states: readonly ResourceState[], seen: Map<string, string>): ResourceState[] {
  const present = new Set(states.map(({ name }) => name));
  const freed = [...seen.keys()].filter((name) => !present.has(name));
  for (const name of freed) seen.delete(name);
  const others = states.filter(({ name, holders, waiters }) => {
    const ids = [...holders, ...waiters].map(({ acquisitionId, mode }) => `${mode.kind} ${acquisitionId}`);
    const now = ids.join('\n');
    if (seen.get(name) === now) return false;
    seen.set(name, now);
    return true;
  });
  return [...others, ...freed.map((name) => ({ name, holders: [], waiters: [] }))];
}

async function all(locks: LockManager, prefix: string): Promise<ResourceState[]> {
  const states: ResourceState[] = [];
  for await (const state of locks.list(prefix)) states.push(state);
  return states.sort((a, b) => (a.name < b.name ? -1 : 1));
}
