import type { IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeApi } from './kube-api.ts';
import { GONE, type KubeStatus, KubeStatusError } from './kube-error.ts';
import type { LeaseList, LeaseObject } from './lease-record.ts';

/** How long a watch goes on while nobody listens: a process that waits again soon needs no new one. */
const LINGER_MS = 5_000;
/** The pauses before a watch is begun again, and its last pause without success. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;
/** How long a watch may take to begin. */
const BEGIN_MS = 10_000;

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  /** Of an `ERROR`, a status. */
  readonly object: LeaseObject & KubeStatus & { readonly code?: number };
}

/** One watch for all Leases with a label, begun again after its end for as long as somebody listens. */
export class LeaseWatch {
  readonly #api: KubeApi;
  readonly #path: string;
  readonly #labelSelector: string;
  /** By the name of a Lease. */
  readonly #listeners = new Map<string, Set<() => void>>();
  #run: AbortController | undefined;
  #linger: NodeJS.Timeout | undefined;
  #stream: IncomingMessage | undefined;
  /** The version up to which changes have been told. */
  #toldUpTo: string | undefined;

  constructor(api: KubeApi, path: string, labelSelector: string) {
    this.#api = api;
    this.#path = path;
    this.#labelSelector = labelSelector;
  }

  /** Calls `changed` after each change of a Lease, and when changes may have been missed. */
  listen(name: string, changed: () => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(changed));
    clearTimeout(this.#linger);
    this.#stream?.socket.ref();
    if (this.#run === undefined) {
      this.#run = new AbortController();
      void this.#keepWatching(this.#run.signal);
    }
    return () => {
      listeners.delete(changed);
      if (listeners.size === 0 && this.#listeners.get(name) === listeners) this.#listeners.delete(name);
      if (this.#listeners.size === 0) this.#lingerOn();
    };
  }

  close(): void {
    clearTimeout(this.#linger);
    this.#run?.abort();
    this.#run = undefined;
    this.#toldUpTo = undefined;
  }

  /** Keeps no process alive while nobody listens. */
  #lingerOn(): void {
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => this.close(), LINGER_MS).unref();
    this.#stream?.socket.unref();
  }

  async #keepWatching(signal: AbortSignal): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      try {
        await this.#watch(signal, () => (pauseMs = FIRST_PAUSE_MS));
      } catch (error) {
        // Only what the server has forgotten is begun anew. Else the next watch goes on where this one broke off.
        if (error instanceof KubeStatusError && error.status === GONE) this.#toldUpTo = undefined;
      }
      await delay(pauseMs * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => {});
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    }
  }

  /** Resolves when the server ends the watch, as it does after some time. */
  async #watch(signal: AbortSignal, begun: () => void): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), BEGIN_MS).unref();
    const limit = AbortSignal.any([signal, late.signal]);
    try {
      const resourceVersion = (this.#toldUpTo ??= await this.#present(limit));
      const query = {
        ...{ watch: 'true', allowWatchBookmarks: 'true' },
        ...{ labelSelector: this.#labelSelector, resourceVersion },
      };
      this.#stream = await this.#api.open({ method: 'GET', path: this.#path, query, signal: limit });
      clearTimeout(timer);
      begun();
      if (this.#listeners.size === 0) this.#stream.socket.unref();
      for await (const line of createInterface({ input: this.#stream }))
        this.#hear(JSON.parse(line) as WatchEvent);
    } finally {
      clearTimeout(timer);
      this.#stream = undefined;
    }
  }

  /** The version of the present. Changes before it may have been missed. */
  async #present(signal: AbortSignal): Promise<string> {
    const query = { labelSelector: this.#labelSelector, limit: '1' };
    const request = { method: 'GET', path: this.#path, query, signal } as const;
    const { metadata } = (await this.#api.send<LeaseList>(request)).body;
    for (const name of [...this.#listeners.keys()]) this.#tell(name);
    return metadata.resourceVersion;
  }

  #hear({ type, object }: WatchEvent): void {
    if (type === 'ERROR') throw new KubeStatusError(object.code ?? GONE, object, undefined);
    this.#toldUpTo = object.metadata.resourceVersion;
    if (type !== 'BOOKMARK') this.#tell(object.metadata.name);
  }

  #tell(name: string): void {
    for (const changed of [...(this.#listeners.get(name) ?? [])]) changed();
  }
}
