import { spawn } from 'node:child_process';
import type { Address } from '@locks/core/conformance/proxy';
import { SpokenProcess } from '../worker/spoken-process.ts';
import { redissonPeer } from './redisson.ts';

export interface RedissonPeerSetup {
  readonly addresses: readonly Address[];
  readonly isCluster: boolean;
  readonly isFenced: boolean;
  /** Of the watchdog of its locks. */
  readonly ttlMs: number;
}

/** What an acquire gave, and when, in milliseconds of the machine's monotonic clock. */
export interface PeerOutcome {
  readonly granted: boolean;
  readonly at: number;
  readonly token?: string;
  readonly error?: string;
}

export interface PeerRelease {
  readonly released: boolean;
  /** Before `unlock` was called. */
  readonly at: number;
  readonly error?: string;
}

/** A Java process with Redisson. A holder is one of its threads: the second acquire of one holder re-enters. */
export class RedissonPeer extends SpokenProcess implements AsyncDisposable {
  static async start({ addresses, ...setup }: RedissonPeerSetup): Promise<RedissonPeer> {
    const [command, ...args] = redissonPeer;
    const urls = addresses.map(({ host, port }) => `redis://${host}:${port}`);
    const peer = new RedissonPeer(
      spawn(command, [...args, JSON.stringify({ ...setup, addresses: urls })], {
        stdio: ['pipe', 'pipe', 'inherit'],
      }),
    );
    await peer.ready();
    return peer;
  }

  /** Begins to acquire. `leaseMs`: absent, the watchdog renews. */
  async begin(holder: string, name: string, waitMs: number, leaseMs = -1): Promise<void> {
    await this.ask('begin', holder, name, waitMs, leaseMs);
  }

  async outcome(holder: string): Promise<PeerOutcome> {
    return (await this.ask('outcome', holder)) as PeerOutcome;
  }

  async acquire(holder: string, name: string, waitMs: number, leaseMs?: number): Promise<PeerOutcome> {
    await this.begin(holder, name, waitMs, leaseMs);
    return this.outcome(holder);
  }

  async release(holder: string, name: string): Promise<PeerRelease> {
    return (await this.ask('release', holder, name)) as PeerRelease;
  }

  async forceUnlock(name: string): Promise<boolean> {
    return (await this.ask('force', name)) as boolean;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
