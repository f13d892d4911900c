import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Address } from '@locks/core/conformance/proxy';
import { readyAfter, startTogether } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import { launchRedis, type RedisServer } from './redis-server.ts';
import type { RespValue } from './resp.ts';
import { sendCommand } from './send-command.ts';
import { modernArguments, startReplicated } from './start-redis.ts';

export interface SentinelOptions {
  /** @defaultValue 2 */
  readonly replicas?: number;
  /** @defaultValue 3 */
  readonly sentinels?: number;
  /** How long a master must be silent before a sentinel calls it down. @defaultValue 1 000 */
  readonly downAfterMs?: number;
  /** More arguments of every data node. */
  readonly args?: readonly string[];
}

/** A master with replicas, watched by sentinels. A failover happens when the master is killed or paused. */
export class SentinelDeployment implements AsyncDisposable {
  /** The name under which sentinels know the master. */
  readonly name = 'locks';
  readonly downAfterMs: number;
  /** The first master and its replicas; {@link SentinelDeployment.master} returns the present master. */
  readonly nodes: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];

  constructor(nodes: readonly RedisServer[], sentinels: readonly RedisServer[], downAfterMs: number) {
    this.nodes = nodes;
    this.sentinels = sentinels;
    this.downAfterMs = downAfterMs;
  }

  /** The master that the sentinels report to clients. Rejects when they do not agree within 10 s. */
  async master(): Promise<RedisServer> {
    return await waitUntil(() => this.#agreedMaster(), { what: 'the sentinels to agree on a master' });
  }

  /** Resolves when all sentinels that answer name the same master, not the one at `oldPort`, and that node is a master. */
  async waitForNewMaster(oldPort: number, timeoutMs = this.downAfterMs * 2 + 30_000): Promise<RedisServer> {
    const promoted = async () => {
      const master = await this.#agreedMaster();
      if (!master || master.port === oldPort) return undefined;
      return (await master.info('replication'))['role'] === 'master' ? master : undefined;
    };
    return await waitUntil(promoted, { what: `a master other than port ${oldPort}`, timeoutMs, everyMs: 25 });
  }

  /** Resolves when every sentinel sees a live master, all other sentinels, and all replicas up. */
  async waitUntilReady(timeoutMs = 30_000): Promise<void> {
    const ready = async () => {
      const views = await Promise.all(this.sentinels.map((sentinel) => this.#view(sentinel)));
      return views.every(Boolean);
    };
    await waitUntil(ready, {
      what: `${this.sentinels.length} sentinels to see each other`,
      timeoutMs,
      everyMs: 25,
    });
  }

  async stop(): Promise<void> {
    // Sentinels stop first: they must not start a failover of nodes that are being stopped.
    await Promise.all(this.sentinels.map((sentinel) => sentinel.stop()));
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #agreedMaster(): Promise<RedisServer | undefined> {
    const running = this.sentinels.filter((sentinel) => sentinel.running);
    const asked = running.map((sentinel) => ask(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name));
    const answers = (await Promise.allSettled(asked))
      .filter((result) => result.status === 'fulfilled')
      .map(({ value }) => (Array.isArray(value) ? Number(value[1]) : Number.NaN));
    const ports = new Set(answers);
    return ports.size === 1 ? this.nodes.find(({ port }) => ports.has(port)) : undefined;
  }

  async #view(sentinel: RedisServer): Promise<boolean> {
    const master = fields(await ask(sentinel, 'SENTINEL', 'MASTER', this.name));
    const replicas = (await ask(sentinel, 'SENTINEL', 'REPLICAS', this.name)) as RespValue[];
    return (
      master['flags'] === 'master' &&
      Number(master['num-other-sentinels']) === this.sentinels.length - 1 &&
      replicas.length === this.nodes.length - 1 &&
      replicas
        .map(fields)
        .every(({ flags, ...rest }) => flags === 'slave' && rest['master-link-status'] === 'ok')
    );
  }
}

/** Starts a master, its replicas and then its sentinels; ready when a failover could happen. */
export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelDeployment> {
  const { replicas = 2, sentinels: count = 3, downAfterMs = 1_000, args = [] } = options;
  const data = await startReplicated({ replicas, args });
  const sentinels: RedisServer[] = [];
  const deployment = new SentinelDeployment([data.master, ...data.replicas], sentinels, downAfterMs);
  return await readyAfter(deployment, async () => {
    const quorum = Math.floor(count / 2) + 1;
    const monitored = { name: deployment.name, master: data.master, quorum, downAfterMs };
    const starting = Array.from({ length: count }, () => launchSentinel(monitored));
    sentinels.push(...(await startTogether(starting)));
    await deployment.waitUntilReady();
  });
}

interface Monitored {
  readonly name: string;
  readonly master: Address;
  readonly quorum: number;
  readonly downAfterMs: number;
}

async function launchSentinel(monitored: Monitored): Promise<RedisServer> {
  let writtenFor: number | undefined;
  return await launchRedis({
    label: 'sentinel',
    async argv({ port, dir }) {
      const file = path.join(dir, 'sentinel.conf');
      // A sentinel keeps its identity and its state in this file: it is written once and kept at a restart.
      if (writtenFor !== port) await writeFile(file, configuration(monitored, port, dir));
      writtenFor = port;
      return [file, '--sentinel', ...(await modernArguments())];
    },
  });
}

function configuration({ name, master, quorum, downAfterMs }: Monitored, port: number, dir: string): string {
  return [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${JSON.stringify(dir)}`,
    `sentinel monitor ${name} ${master.host} ${master.port} ${quorum}`,
    `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
    // The limit of an attempt, and half of the pause before the next: short, so that a lost vote costs little.
    `sentinel failover-timeout ${name} ${Math.max(3_000, downAfterMs * 3)}`,
    `sentinel parallel-syncs ${name} 10`,
    '',
  ].join('\n');
}

async function ask(sentinel: RedisServer, ...command: string[]): Promise<RespValue> {
  return await sendCommand(sentinel, command, { timeoutMs: 1_000 });
}

function fields(reply: RespValue): Record<string, string> {
  const flat = Array.isArray(reply) ? reply.map(String) : [];
  return Object.fromEntries(
    flat.flatMap((key, index) => (index % 2 === 0 ? [[key, flat[index + 1] ?? '']] : [])),
  );
}
